//! Upstreams: what the proxy knows and the program does not.

use super::door::Open;
use crate::server::{Asked, Reply, Scripted, Server, reply};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response,
    body::{Bytes, Frame},
};
use toolyard_egress::{Addresses, Door, Egress, Proxy, Upstream, Verdict};

const SECRET: &str = "sk-hunter22hunter22";

/// A proxy with one upstream, which leads to this server by `models.example`.
async fn open(server: &Server, may: Addresses) -> Open {
    let egress = Egress::new().resolver(Scripted::new(&[&["127.0.0.1"]]));
    let url = format!("http://models.example:{}", server.port);
    let bearer = format!("Bearer {SECRET}");
    let secrets = [("authorization", &*bearer), ("x-api-key", SECRET), ("x-team", "42")];
    let upstream = Upstream::new("models", &url, may, secrets, &egress).unwrap();
    Open::new(Proxy::new(&egress).upstream(upstream)).await
}

/// Tells in head and body all that it was sent.
fn telling(asked: &Asked) -> Reply {
    let mut answer = reply(200, format!("{asked:?} {}", String::from_utf8_lossy(&asked.body)));
    let told =
        asked.headers.iter().map(|(name, value)| (format!("x-{name}").parse().unwrap(), value.clone()));
    answer.headers_mut().extend(told.collect::<Vec<(hyper::header::HeaderName, _)>>());
    answer
}

/// SB-10: an upstream gets its secret in place of whatever the program sends, and the program reads it nowhere.
#[tokio::test]
async fn the_program_does_not_see_the_secret() {
    let server = Server::open(|asked| {
        // The test looks at what was sent, and the program at what is told of it.
        let mut shown = asked.clone();
        for value in shown.headers.values_mut() {
            value.set_sensitive(false);
        }
        telling(&shown)
    })
    .await;
    let mut proxy = open(&server, Addresses::Any).await;
    let answer = proxy
        .ask(
            "POST /models/v1/chat?x=%2F HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dummy\r\n\
             Authorization: Basic dummy\r\nX-API-Key: dummy\r\nX-Team: dummy\r\nConnection: x-api-key, authorization\r\n\
             Accept-Encoding: gzip, br\r\nContent-Length: 5\r\n\r\nhello",
        )
        .await;
    let asked = server.only();
    assert_eq!((&*asked.method, &*asked.uri, &*asked.body), ("POST", "/v1/chat?x=%2F", &b"hello"[..]));
    let all = |name: &str| {
        asked.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(all("authorization"), [format!("Bearer {SECRET}")]);
    assert_eq!((all("x-api-key"), all("x-team")), (vec![SECRET], vec!["42"]));
    assert_eq!(all("host"), [format!("models.example:{}", server.port)]);
    assert_eq!(all("accept-encoding"), ["identity"]);

    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("hello"), "{answer}");
    assert!(!answer.contains("hunter22"), "{answer}");
    let covered = "*".repeat(SECRET.len());
    assert!(answer.contains(&format!("x-x-api-key: {covered}\r\n")), "{answer}");
    assert!(answer.contains(&format!("\"x-api-key\": \"{covered}\"")), "{answer}");
    let visit = proxy.visit().await;
    assert_eq!((visit.door, visit.verdict), (Some(Door::Upstream("models".into())), Verdict::Served));
}

/// SB-10: a secret is not read in pieces, either.
#[tokio::test]
async fn a_secret_is_not_read_in_pieces() {
    let server = Server::open(|_| {
        let (begin, end) = SECRET.split_at(7);
        let pieces = ["{\"error\": \"bad key ", begin, end, "\"}"];
        let frames = pieces.map(|piece| Ok(Frame::data(Bytes::from(piece))));
        Response::new(StreamBody::new(futures::stream::iter(frames)).boxed_unsync())
    })
    .await;
    let answer = open(&server, Addresses::Any).await.ask("GET /models/ HTTP/1.0\r\n\r\n").await;
    let expect = format!("\r\n\r\n{{\"error\": \"bad key {}\"}}", "*".repeat(SECRET.len()));
    assert!(answer.ends_with(&expect), "{answer}");
}

/// SB-10: what cannot be looked into is not handed back.
#[tokio::test]
async fn an_encoded_answer_is_not_handed_back() {
    let server = Server::open(|_| {
        let mut answer = reply(200, "\x1f\u{8b}");
        answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        answer
    })
    .await;
    let answer = open(&server, Addresses::Any).await.ask("GET /models/ HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("encoded its answer"), "{answer}");
}

/// SB-10: an upstream is reached by its name alone, and its door is no way to anything else.
#[tokio::test]
async fn an_upstream_is_reached_by_its_name_alone() {
    let server = Server::open(|_| reply(200, "x")).await;
    let proxy = open(&server, Addresses::Any).await;
    let port = server.port;
    for (request, status) in [
        ("GET /model/x".to_owned(), 404),
        ("GET /x/../models/x".to_owned(), 404),
        ("TRACE /models/x".to_owned(), 403),
        // The secret is for the door, not for the host.
        (format!("GET http://models.example:{port}/"), 403),
        (format!("CONNECT models.example:{port}"), 403),
        (format!("GET http://127.0.0.1:{}/models/x", proxy.port), 403),
    ] {
        let answer = proxy.ask(format!("{request} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    assert_eq!(server.accepted(), 0);
}

/// SB-10: the address of an upstream is judged like any other.
#[tokio::test]
async fn the_address_of_an_upstream_is_judged() {
    let server = Server::open(|_| reply(200, "x")).await;
    let answer = open(&server, Addresses::Public).await.ask("GET /models/x HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("this machine"), "{answer}");
    assert_eq!(server.accepted(), 0);
}

/// SB-10: a redirect is the program's to follow, without the secret.
#[tokio::test]
async fn a_redirect_is_handed_back() {
    let server = Server::open(|_| {
        let mut answer = reply(307, "");
        answer.headers_mut().insert("location", format!("http://evil.example/{SECRET}").parse().unwrap());
        answer
    })
    .await;
    let proxy = open(&server, Addresses::Any).await;
    let answer = proxy.ask("GET /models/x HTTP/1.1\r\n\r\n").await;
    assert!(answer.contains("location: http://evil.example/*") && !answer.contains("hunter22"), "{answer}");
    assert_eq!(server.accepted(), 1);
}

/// SB-10: the proxy speaks TLS itself, and shows the secret to nobody who does not prove to be the one that is meant.
#[cfg(feature = "https")]
#[tokio::test]
async fn an_upstream_over_tls_gets_the_secret_alone() {
    use crate::tls::{acceptor, encrypted, file};
    let acceptor = acceptor();
    let first = move |stream| encrypted(acceptor.clone(), stream);
    let server = Server::behind(|_| reply(200, "x"), first).await;
    let url = format!("https://localhost:{}", server.port);
    for (egress, status) in [(Egress::new(), 502), (Egress::new().authorities(file("ca.pem")), 200)] {
        let secret = ("x-api-key", SECRET);
        let upstream = Upstream::new("models", &url, Addresses::Any, [secret], &egress).unwrap();
        let proxy = Open::new(Proxy::new(&egress).upstream(upstream)).await;
        let answer = proxy.ask("GET /models/x HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
    assert_eq!(server.only().headers["x-api-key"], SECRET);
}
