//! Services over HTTPS, with a certificate for `localhost` issued by our own authority.

use crate::server::{Server, call_by, reply};
use std::{path::PathBuf, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
    server::TlsStream,
};
use toolyard_core::{Service, ToolErrorKind};
use toolyard_egress::{CallFailed, Egress, NotSent, OriginError, RemoteService, SetupError};

pub(crate) fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/egress").join(name)
}

/// What accepts connections as `localhost`.
pub(crate) fn acceptor() -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(file("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    Arc::new(config).into()
}

/// A client that rejects the certificate hangs up.
pub(crate) async fn encrypted(acceptor: TlsAcceptor, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    acceptor.accept(stream).await.ok()
}

async fn open() -> Server {
    let acceptor = acceptor();
    Server::behind(|_| reply(200, "x"), move |stream| encrypted(acceptor.clone(), stream)).await
}

fn service(host: &str, server: &Server) -> Service {
    let mut service = Service::new(format!("https://{host}:{}/", server.port));
    service.allow_private = true;
    service
}

fn trusting() -> Egress {
    Egress::new().authorities(file("ca.pem"))
}

/// SB-2: a service with a trusted certificate is called like any other.
#[tokio::test]
async fn a_service_over_https_is_called_like_any_other() {
    let (server, egress) = (open().await, trusting());
    for _ in 0..3 {
        let answered = call_by(&egress, &service("localhost", &server)).await.unwrap();
        assert_eq!((answered.status, &*answered.body.text), (200, "x"));
    }
    assert_eq!(server.accepted(), 3);
    assert_eq!(server.seen.lock().unwrap()[0].headers["host"], format!("localhost:{}", server.port));
}

/// SB-2: an untrusted certificate, one for another name and a service without TLS are shown nothing, so that nothing
/// has happened; a certificate gets no better by waiting.
#[tokio::test]
async fn a_service_that_cannot_be_believed_is_shown_nothing() {
    let server = open().await;
    for (egress, host) in [(Egress::new(), "localhost"), (trusting(), "127.0.0.1")] {
        let failed = call_by(&egress, &service(host, &server)).await.unwrap_err();
        assert!(matches!(failed, CallFailed::NotSent(NotSent::Untrusted { .. })), "{failed:?}");
        let error = failed.tool_error();
        assert!(error.kind() == ToolErrorKind::Execution && error.has_no_side_effect());
    }
    assert!(server.seen.lock().unwrap().is_empty());

    let open = Server::open(|_| reply(200, "x")).await;
    let failed = call_by(&trusting(), &service("localhost", &open)).await.unwrap_err();
    assert!(matches!(failed, CallFailed::NotSent(NotSent::Unreachable { .. })), "{failed:?}");
    assert!(open.seen.lock().unwrap().is_empty());
}

/// A file without certificates is reported by its name, when the service is made.
#[test]
fn a_file_without_certificates_is_reported() {
    for (name, why) in
        [("localhost.key", "localhost.key' cannot be used: it contains no"), ("no.pem", "no.pem'")]
    {
        let egress = Egress::new().authorities(file(name));
        let error = RemoteService::new(&Service::new("https://a.example"), &egress).unwrap_err();
        assert!(matches!(error, SetupError::Origin(OriginError::NoTls(_))));
        assert!(error.to_string().contains(why), "{error}");
    }
}
