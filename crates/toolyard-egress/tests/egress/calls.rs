//! Calls of services that behave.

use crate::server::{Server, call, context, reply};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Response,
    body::{Bytes, Frame},
};
use serde_json::{Value, json};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{io::AsyncReadExt, sync::Notify, time::Instant};
use toolyard_core::{OutputKind, ToolErrorKind};
use toolyard_egress::{Egress, RemoteService};
use toolyard_program::{Given, Kept};

/// SB-2: a call is one POST with the contract's document and headers, and the service's own.
#[tokio::test]
async fn a_call_is_one_post_by_the_contract() {
    let server = Server::open(|_| reply(200, "2\n")).await;
    let mut service = server.service();
    service.headers = Arc::new([("X-Key".into(), "hunter22".into())]);
    let (cx, arguments) = (context(Some("order-1")), json!({"text": "a b"}));
    let given = Given::new(&arguments, &cx, Instant::now());
    let remote = RemoteService::new(&service, &Egress::new()).unwrap();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let answered = remote.call(&given, Some(trace)).await.unwrap();
    assert_eq!((answered.status, answered.body), (200, Kept::whole("2\n")));

    let asked = server.only();
    assert_eq!((&*asked.method, &*asked.uri), ("POST", "/tool?key=value"));
    let expect = json!({"tool": "count", "call_id": "call_7", "attempt": 1, "arguments": {"text": "a b"}});
    assert_eq!(serde_json::from_slice::<Value>(&asked.body).unwrap(), expect);
    for (name, value) in [
        ("content-type", "application/json"),
        ("host", &*format!("127.0.0.1:{}", server.port)),
        ("idempotency-key", "order-1"),
        ("traceparent", trace),
        ("x-key", "hunter22"),
        ("connection", "close"),
    ] {
        assert_eq!(asked.headers[name], value, "{name}");
    }
    // What is not understood is not asked for.
    assert!(!asked.headers.contains_key("accept-encoding"));
    assert!(!format!("{remote:?}").contains("hunter22"));
}

/// SB-10: each call has a connection of its own, also after one that could be used again.
#[tokio::test]
async fn each_call_has_its_own_connection() {
    let server = Server::open(|_| reply(200, "x")).await;
    for _ in 0..3 {
        call(&server.service()).await.unwrap();
    }
    assert_eq!(server.accepted(), 3);
}

/// SB-10: a redirect is an answer like any other.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::open(|_| reply(200, "x")).await;
    let to = format!("http://127.0.0.1:{}/", elsewhere.port);
    for status in [301, 302, 303, 307, 308] {
        let to = to.clone();
        let server = Server::open(move |_| {
            let mut answer = reply(status, "");
            answer.headers_mut().insert("location", to.parse().unwrap());
            answer
        })
        .await;
        let answered = call(&server.service()).await.unwrap();
        let error = answered.result(OutputKind::Text, SystemTime::now()).unwrap_err();
        assert!(error.message().ends_with("a redirect, which is not followed"), "{error}");
        assert_eq!(server.accepted(), 1);
    }
    assert_eq!(elsewhere.accepted(), 0);
}

/// SB-2, RT-3: a service that asks for patience is heard, and not asked again.
#[tokio::test]
async fn a_service_that_asks_for_patience_is_heard() {
    for (status, kind) in [(429, ToolErrorKind::RateLimited), (503, ToolErrorKind::Transient)] {
        let server = Server::open(move |_| {
            let mut answer = reply(status, "later");
            answer.headers_mut().insert("retry-after", "7".parse().unwrap());
            answer
        })
        .await;
        let answered = call(&server.service()).await.unwrap();
        let error = answered.result(OutputKind::Text, SystemTime::now()).unwrap_err();
        assert_eq!((error.kind(), error.retry_after_hint()), (kind, Some(Duration::from_secs(7))));
        assert!(error.message().ends_with("later"));
        assert_eq!(server.accepted(), 1);
    }
}

/// SB-2: a body without a length, in pieces, is whole at its end; its trailers are not a part of it.
#[tokio::test]
async fn a_body_in_pieces_is_whole() {
    let server = Server::open(|_| {
        let trailers = Frame::trailers([("x".parse().unwrap(), "y".parse().unwrap())].into_iter().collect());
        let pieces = ["one ", "two ", "", "three"].map(|piece| Frame::data(Bytes::from(piece)));
        let frames = pieces.into_iter().chain([trailers]).map(Ok);
        Response::new(StreamBody::new(futures::stream::iter(frames)).boxed_unsync())
    })
    .await;
    let answered = call(&server.service()).await.unwrap();
    assert_eq!(answered.body, Kept::whole("one two three"));
}

/// SB-10: who stops waiting for a service that is slow has ended the connection with it.
#[tokio::test]
async fn whoever_stops_waiting_has_hung_up() {
    let (asked, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (was_asked, has_gone) = (asked.clone(), gone.clone());
    let server = Server::raw(move |mut stream| {
        let (asked, gone) = (was_asked.clone(), has_gone.clone());
        async move {
            let mut bytes = [0; 4096];
            while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
                asked.notify_one();
            }
            gone.notify_one();
        }
    })
    .await;
    let service = server.service();
    tokio::select! {
        biased;
        answered = call(&service) => panic!("{answered:?}"),
        () = asked.notified() => {}
    }
    gone.notified().await;
}
