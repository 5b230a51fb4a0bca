//! The server over TLS (HT-10), with a certificate for `localhost` that the tests' own authority issued.

use crate::yard::{APPROVER, CALLER, OPERATOR, Yard, call};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use toolyard_server::{Bounds, Notify, Tls, TlsError};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../toolyard-egress/tests/egress").join(name)
}

fn tls() -> Tls {
    Tls::from_files(&file("localhost.pem"), &file("localhost.key")).unwrap()
}

async fn encrypted(bounds: impl FnOnce(&mut Bounds)) -> Yard {
    let mut given = Bounds::default();
    bounds(&mut given);
    Yard::with(|options| options.tls(tls()).page().bounds(given)).await
}

/// Sends a request to a yard, and returns the status and the body of its answer; nothing if it gets none.
async fn sent(yard: &Yard, method: &str, path: &str, more: &str, body: &str) -> Option<(u16, Value)> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("ca.pem")).unwrap()).unwrap();
    let provider = toolyard_egress::tls_provider().unwrap();
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(yard.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    let (port, length) = (yard.address.port(), body.len());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n{more}\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Some((status, serde_json::from_str(body).unwrap()))
}

fn bearer(secret: &str) -> String {
    format!("authorization: Bearer {secret}\r\n")
}

/// HT-8, HT-10: over TLS it serves as it does without; its links and its own origin are encrypted ones.
#[tokio::test]
async fn a_client_over_tls_is_served_like_any_other() {
    let yard = encrypted(|_| {}).await;
    let url = format!("https://{}", yard.address);
    assert_eq!(yard.server.url(yard.address), url);
    assert!(yard.server.link(yard.address).unwrap().starts_with(&format!("{url}/#code=")));
    let (status, session) = sent(&yard, "POST", "/sessions", &bearer(CALLER), r#"{"id":"a"}"#).await.unwrap();
    assert_eq!((status, &session["id"]), (201, &json!("a")));
    let port = yard.address.port();
    for (origin, expected) in [("https", 200), ("http", 403)] {
        let more = format!("{}origin: {origin}://localhost:{port}\r\n", bearer(APPROVER));
        assert_eq!(sent(&yard, "GET", "/sessions", &more, "").await.unwrap().0, expected, "{origin}");
    }
    yard.close().await;
}

/// HT-10: whoever speaks no TLS gets no answer, and others are served all the same.
#[tokio::test]
async fn plain_http_is_not_answered() {
    let yard = encrypted(|_| {}).await;
    let mut plain = TcpStream::connect(yard.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // It may be reset as well: some of the request was not read.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
    assert!(yard.client.get(format!("http://{}/healthz", yard.address)).send().await.is_err());
    assert_eq!(sent(&yard, "GET", "/sessions", &bearer(CALLER), "").await.unwrap().0, 200);
    yard.close().await;
}

/// HT-10: clients that do not go on with their handshakes make room for others.
#[tokio::test]
async fn handshakes_that_do_not_go_on_keep_nobody() {
    let yard = encrypted(|bounds| bounds.strangers_max = 2).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(yard.address).await.unwrap());
        assert_eq!(sent(&yard, "GET", "/sessions", &bearer(CALLER), "").await.unwrap().0, 200);
    }
    assert_eq!(silent[0].read(&mut [0; 8]).await.unwrap_or_default(), 0);
    yard.close().await;
}

/// HT-10: a handshake has 10 s.
#[tokio::test(start_paused = true)]
async fn a_handshake_has_a_bound() {
    let yard = encrypted(|_| {}).await;
    let mut silent = TcpStream::connect(yard.address).await.unwrap();
    silent.write_all(&[22, 3, 1]).await.unwrap(); // a record that has begun
    let read =
        timeout(Duration::from_secs(3600), async { silent.read(&mut [0; 8]).await.unwrap_or_default() });
    assert_eq!(read.await, Ok(0));
}

/// HT-5: a receiver over HTTPS is told if its authority is trusted, and is not if that is another one.
#[tokio::test]
async fn a_receiver_over_https_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/hook", listener.local_addr().unwrap().port());
    let key = PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let chain = vec![CertificateDer::from_pem_file(file("localhost.pem")).unwrap()];
    let config = ServerConfig::builder_with_provider(toolyard_egress::tls_provider().unwrap());
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(chain, key).unwrap()));
    let notify = Notify::new(url, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap()).allow_private();
    for (notify, outcome) in [(notify.clone(), "failed"), (notify.authorities(file("ca.pem")), "delivered")] {
        let yard = Yard::with(|options| options.notify(notify)).await;
        yard.session("a").await;
        yard.turn("a", json!([call("1", "save", json!({"path": "x"}))])).await;
        let (stream, _) = listener.accept().await.unwrap();
        if let Ok(mut stream) = acceptor.accept(stream).await {
            let mut head = vec![0; 4];
            stream.read_exact(&mut head).await.unwrap();
            assert_eq!(head, b"POST");
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        }
        let counted = format!("{{outcome=\"{outcome}\"}} 1\n");
        while !yard.get(OPERATOR, "/metrics").await.with(200).as_str().unwrap().contains(&counted) {
            tokio::task::yield_now().await;
        }
        yard.close().await;
    }
}

/// HT-10: an error names the file, and what is wrong with it.
#[test]
fn what_cannot_be_used_is_named() {
    let error = |certificates, key| Tls::from_files(&file(certificates), &file(key)).unwrap_err();
    let missing = error("no.pem", "localhost.key").to_string();
    assert!(missing.contains("no.pem' cannot be read"), "{missing}");
    let no_certificate = error("localhost.key", "localhost.key").to_string();
    assert!(no_certificate.contains("localhost.key' has no certificate"), "{no_certificate}");
    let no_key = error("localhost.pem", "ca.pem").to_string();
    assert!(no_key.contains("ca.pem' has no private key"), "{no_key}");
    let other = error("localhost.pem", "../../../toolyard-server/tests/http/other.key");
    assert!(matches!(other, TlsError::OtherKey { .. }), "{other}");
    let folder = error(".", "localhost.key").to_string();
    assert!(folder.contains("is not a regular file"), "{folder}");
}
