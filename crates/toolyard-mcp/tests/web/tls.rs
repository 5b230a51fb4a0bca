//! Servers over HTTPS, with a certificate for `localhost` issued by our own authority.

use crate::web::{
    server::{Web, plain},
    yard::Yard,
};
use serde_json::json;
use std::{path::PathBuf, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig as TlsConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    },
    server::TlsStream,
};
use toolyard_mcp::{ServerConfig, Servers};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/web").join(name)
}

async fn open() -> Web {
    let certificate = CertificateDer::from_pem_file(file("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let config = TlsConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Web::behind(plain, move |stream| {
        let acceptor = acceptor.clone();
        async move { encrypted(acceptor, stream).await }
    })
    .await
}

async fn encrypted(acceptor: TlsAcceptor, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
    // A client that rejects the certificate hangs up.
    acceptor.accept(stream).await.ok()
}

fn config(host: &str, web: &Web) -> ServerConfig {
    ServerConfig::http("s", format!("https://{host}:{}/mcp", web.port))
}

async fn refused(config: ServerConfig) -> String {
    match Servers::start(vec![config]).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it was believed"),
    }
}

/// A server with a trusted certificate is called, and gets its token and headers.
#[tokio::test]
async fn a_server_over_https_is_called_like_any_other() {
    let web = open().await;
    let server = config("localhost", &web).ca(file("ca.pem")).bearer("token-1").header("x-team", "tools");
    let yard = Yard::open(vec![server]).await;
    let call = |n: usize| toolyard::Call::new(n.to_string(), "s__echo", json!({}));
    for outcome in yard.all((0..16).map(call).collect()).await {
        assert_eq!(outcome.status.unwrap().to_text(), "echo");
    }
    yard.servers.shutdown().await;
    let seen = web.seen.lock().unwrap();
    assert!(seen.iter().all(|asked| asked.headers["authorization"] == "Bearer token-1"));
    assert!(seen.iter().all(|asked| asked.headers["x-team"] == "tools"));
}

/// An untrusted certificate, one for another name, and a server without TLS are reported, and nothing is sent to them.
#[tokio::test]
async fn a_server_that_cannot_be_believed_is_shown_nothing() {
    let web = open().await;
    let said = refused(config("localhost", &web).bearer("token-1")).await;
    assert!(said.contains("it cannot be reached") && said.contains("is a ca missing?"), "{said}");
    let said = refused(config("127.0.0.1", &web).ca(file("ca.pem"))).await;
    assert!(said.contains("certificate not valid for name \"127.0.0.1\""), "{said}");
    assert!(web.seen.lock().unwrap().is_empty());

    let open = Web::open(plain).await;
    let said = refused(config("localhost", &open).ca(file("ca.pem"))).await;
    assert!(said.contains("it cannot be reached"), "{said}");
    assert!(open.seen.lock().unwrap().is_empty());
}

/// A file without certificates is reported by its name.
#[tokio::test]
async fn a_file_without_certificates_is_reported() {
    let web = open().await;
    let said = refused(config("localhost", &web).ca(file("localhost.key"))).await;
    assert!(said.contains("localhost.key': it contains no certificate"), "{said}");
    let said = refused(config("localhost", &web).ca(file("no.pem"))).await;
    assert!(said.contains("no.pem': "), "{said}");
}
