//! Answers with an HTTP status that is no success, and what of them is read.

use crate::web::{
    calls::{by, failed},
    server::{Asked, Reply, Web, flood, pieces, plain, reply},
    yard::Yard,
};
use futures::stream;
use hyper::body::Bytes;
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use toolyard::{Effect, ErrorKind};

/// A refusal with this header.
fn with(status: u16, name: &'static str, value: &'static str) -> Reply {
    let mut reply = reply(status, "text/plain", "");
    reply.headers_mut().insert(name, value.parse().unwrap());
    reply
}

/// A server that refuses a call says that it did nothing.
#[tokio::test]
async fn a_call_that_was_not_taken_did_nothing() {
    for (status, why) in [(401, "its token is missing or not valid"), (403, "its token lacks permission")] {
        let error = failed(move |_| with(status, "www-authenticate", "Bearer scope=\"all\"")).await;
        assert_eq!((error.kind, error.effect), (ErrorKind::PermissionDenied, Effect::Failed), "{error:?}");
        let why = format!("{why} (HTTP {status}: Bearer scope=\"all\")");
        assert!(error.message.ends_with(&why), "{}", error.message);
    }
    let error = failed(|_| reply(429, "text/plain", "")).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::RateLimited, Effect::Failed), "{error:?}");
}

/// RT-3: a server that is busy may say for how long.
#[tokio::test]
async fn a_busy_server_says_when_to_come_again() {
    let error = failed(|_| with(429, "retry-after", "7")).await;
    assert_eq!((error.kind, error.effect), (ErrorKind::RateLimited, Effect::Failed), "{error:?}");
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
}

/// A protocol error counts, whatever the status is that it comes with; that of a missing token is the exception.
#[tokio::test]
async fn an_error_in_the_body_is_what_the_model_reads() {
    for status in [400, 404, 500] {
        let error = failed(move |asked| {
            let error = json!({"code": -32602, "message": "no such thing"});
            let all = json!({"jsonrpc": "2.0", "id": asked.message["id"], "error": error});
            reply(status, "application/json", all.to_string())
        })
        .await;
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::ExecutionError, "no such thing"),
            "{status}"
        );
    }
    let error = failed(|asked| reply(403, "application/json", asked.refusal(-1).to_string())).await;
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.message.contains("it answered HTTP 403 Forbidden"), "{}", error.message);
}

/// An answer that refuses a call is not read to its end if it is long: its status says enough.
#[tokio::test]
async fn a_flood_of_a_refusal_is_not_taken_in() {
    for (status, kind, why) in [
        (404, "text/html", "its answer has more than 65536 bytes"),
        (400, "application/json", "its answer has more than 65536 bytes"),
        (500, "application/json", "it answered HTTP 500"),
        (500, "text/html", "it answered HTTP 500"),
    ] {
        let taken = Arc::new(AtomicUsize::new(0));
        let count = taken.clone();
        let error = failed(move |_| {
            let mut reply = flood(kind, "<h1>", &count);
            *reply.status_mut() = hyper::StatusCode::from_u16(status).unwrap();
            reply
        })
        .await;
        assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Unknown), "{error:?}");
        assert!(error.message.contains(why), "{status} {kind}: {}", error.message);
        assert!(taken.load(Ordering::Relaxed) < 20, "{status} {kind}: {taken:?} MiB");
    }
}

/// The same for an answer that refuses the newer greeting: the older one follows.
#[tokio::test]
async fn a_flood_that_refuses_a_greeting_is_not_taken_in() {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let web = Web::open(move |asked: &Asked| match asked.what() {
        "server/discover" => {
            let mut reply = flood("text/html", "<h1>", &count);
            *reply.status_mut() = hyper::StatusCode::BAD_REQUEST;
            reply
        }
        _ => plain(asked),
    })
    .await;
    let yard = Yard::open(vec![web.config("s")]).await;
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    assert!(taken.load(Ordering::Relaxed) < 20, "{taken:?} MiB");
    yard.servers.shutdown().await;
}

/// V4, V5: what comes behind a numbered event is asked for, and once only if it is too large.
#[tokio::test]
async fn a_flood_in_the_rest_of_an_answer_ends_its_call() {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    let web = Web::open(move |asked: &Asked| match (asked.what(), asked.headers.get("last-event-id")) {
        ("GET", Some(_)) => flood("text/event-stream", "data: ", &count),
        _ => by(|_| {
            let first = Bytes::from_static(b"id: 1\nretry: 1\ndata:\n\n");
            pieces("text/event-stream", stream::iter([first]))
        })(asked),
    })
    .await;
    let yard = Yard::open(vec![web.config("s")]).await;
    let error = yard.call("s__odd", json!({})).await.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Unknown), "{error:?}");
    assert_eq!(web.count("GET"), 1);
    assert!(taken.load(Ordering::Relaxed) < 30, "{taken:?} MiB");
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    yard.servers.shutdown().await;
}
