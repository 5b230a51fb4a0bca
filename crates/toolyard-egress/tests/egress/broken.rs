//! Services that break: what is told apart is whether anything may have happened there.

use crate::server::{Server, call};
use std::{process::Command, time::SystemTime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use toolyard_core::{OutputKind, Service, ToolErrorKind};
use toolyard_egress::{CallFailed, Egress, NotSent, OriginError, RemoteService, SetupError};

/// A server that reads a request and then sends this and no more.
async fn saying(answer: &'static str) -> Server {
    Server::raw(move |mut stream| async move {
        read_request(&mut stream).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await
}

/// Reads up to the end of the contract's document.
async fn read_request(stream: &mut TcpStream) {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"}}") {
        stream.read_buf(&mut bytes).await.unwrap();
    }
}

fn is_lost(failed: &CallFailed) -> bool {
    let error = failed.tool_error();
    matches!(failed, CallFailed::Lost { .. })
        && !failed.is_without_effect()
        && error.kind() == ToolErrorKind::Transient
        && error.has_unknown_outcome()
}

/// SB-2: where nobody listens, nothing has happened.
#[tokio::test]
async fn without_a_connection_nothing_has_happened() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = Service::new(format!("http://{}/?token=hunter22", listener.local_addr().unwrap()));
    service.allow_private = true;
    drop(listener);
    let failed = call(&service).await.unwrap_err();
    assert!(matches!(failed, CallFailed::NotSent(NotSent::Unreachable { .. })) && failed.is_without_effect());
    let error = failed.tool_error();
    assert!(error.kind() == ToolErrorKind::Transient && error.has_no_side_effect());
    assert!(
        error.message().contains("cannot be reached") && !error.message().contains("hunter22"),
        "{error}"
    );
}

/// SB-2: a request that has been sent may have been carried out, also if the service did not seem to read it.
#[tokio::test]
async fn what_was_sent_may_have_happened() {
    let deaf = Server::raw(|stream| async move { stream.readable().await.unwrap() }).await;
    let failed = call(&deaf.service()).await.unwrap_err();
    assert!(is_lost(&failed), "{failed:?}");
    for answer in [
        "",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhal",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhal\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "SSH-2.0-OpenSSH_9.2\r\n",
    ] {
        let failed = call(&saying(answer).await.service()).await.unwrap_err();
        assert!(is_lost(&failed), "{answer:?}: {failed:?}");
        assert!(failed.to_string().contains("has not answered: "), "{failed}");
    }
}

/// SB-2: a failure that was told is known, also if its explanation breaks off.
#[tokio::test]
async fn a_failure_needs_no_whole_explanation() {
    let server = saying("HTTP/1.1 503 Busy\r\nretry-after: 3\r\ncontent-length: 9\r\n\r\nhal").await;
    let answered = call(&server.service()).await.unwrap();
    assert!(!answered.body.is_whole);
    let error = answered.result(OutputKind::Text, SystemTime::now()).unwrap_err();
    assert!(error.message() == "HTTP 503: hal" && !error.has_unknown_outcome());
}

/// SB-2: a status that is not the last one is waited over.
#[tokio::test]
async fn an_interim_status_is_no_answer() {
    let server = saying("HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx").await;
    let answered = call(&server.service()).await.unwrap();
    assert_eq!((answered.status, &*answered.body.text), (200, "x"));
}

/// SB-2: what cannot be called is refused before it is called.
#[tokio::test]
async fn what_cannot_be_called_is_no_service() {
    let made = |url: &str| RemoteService::new(&Service::new(url), &Egress::new()).map(drop);
    assert!(made("http://a.example/x?y#z").is_ok());
    assert_eq!(made("https://a.example").is_ok(), cfg!(feature = "https"));
    if !cfg!(feature = "https") {
        let error = made("https://a.example").unwrap_err();
        assert!(matches!(error, SetupError::Origin(OriginError::NoTls(_))));
        assert!(error.to_string().contains("built without TLS"), "{error}");
    }
    for url in ["a.example", "file:///etc/passwd", "http://me:hunter22@a.example/", "unix:/run/x"] {
        let error = made(url).unwrap_err();
        assert!(!error.to_string().contains("hunter22"), "{error}");
        assert!(error.tool_error().has_no_side_effect());
    }
}

/// SB-10: a proxy that the environment names is not used. The test is run again where there is one.
#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "https_proxy"] {
        again.env(name, "http://127.0.0.1:1");
    }
    let output = again.args(["--exact", "calls::a_call_is_one_post_by_the_contract"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
