//! Requests that come at once: bounds are exact, and nothing is left of what they race with.

use crate::yard::{Answer, CALLER, Yard, call};
use futures::{StreamExt as _, channel::mpsc, future::join_all};
use reqwest::{Body, Method};
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    runtime::Handle,
};

fn statuses(answers: &[Answer]) -> Vec<u16> {
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    statuses
}

/// HT-10: of turns that begin at once as many are open as may be, also while their bodies arrive; those that were refused
/// hold no place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_turns_are_bounded_exactly() {
    let yard = Yard::bounded(|bounds| bounds.turns_open_max = 5).await;
    yard.session("a").await;
    let body = json!({"calls": [call("1", "gate", json!({}))]});
    for round in 0..20 {
        let begun = join_all((0..16).map(|_| yard.post(CALLER, "/sessions/a/turns", body.clone()))).await;
        assert_eq!(statuses(&begun), [[202; 5].as_slice(), &[429; 11]].concat(), "round {round}");
        yard.gate.add_permits(5);
        for turn in begun.iter().filter_map(|begun| begun.body["turn"].as_u64()) {
            yard.ended("a", turn).await;
        }
    }
    // A body that is read and refused leaves its place.
    for _ in 0..10 {
        let refused = yard.post(CALLER, "/sessions/a/turns", json!({"nonsense": 1})).await;
        assert_eq!(refused.problem(422), "response");
    }
    // One whose body is still arriving has a place: the server asks for the body once it has.
    let (address, text) = (yard.address, body.to_string());
    let mut arriving = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /sessions/a/turns HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {CALLER}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        text.len()
    );
    arriving.write_all(head.as_bytes()).await.unwrap();
    let mut said = [0; 25];
    arriving.read_exact(&mut said).await.unwrap();
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    let beside = join_all((0..6).map(|_| yard.post(CALLER, "/sessions/a/turns", body.clone()))).await;
    assert_eq!(statuses(&beside), [202, 202, 202, 202, 429, 429]);
    arriving.write_all(text.as_bytes()).await.unwrap();
    arriving.read_exact(&mut said[..12]).await.unwrap();
    assert_eq!(&said[..12], b"HTTP/1.1 202");
    yard.gate.add_permits(5);
    yard.close().await;
}

/// HT-10: of forks that are made at once as many are there as may be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_are_bounded_exactly() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let fork = || yard.post(CALLER, "/sessions/a/agents", json!({}));
    for _ in 0..98 {
        assert_eq!(statuses(&join_all((0..10).map(|_| fork())).await), [201; 10]);
    }
    let last = join_all((0..64).map(|_| fork())).await;
    assert_eq!(statuses(&last), [[201; 19].as_slice(), &[429; 45]].concat());
    let shown = yard.get(CALLER, "/sessions/a").await.with(200);
    assert_eq!(shown["agents"].as_array().unwrap().len(), 1000);
    yard.close().await;
}

/// Waits until the name of a session is free again, which it is once nothing of the session is left.
async fn gone(yard: &Yard, id: &str) {
    loop {
        let again = yard.post(CALLER, "/sessions", json!({ "id": id })).await;
        match again.status.as_u16() {
            201 => return,
            _ => assert_eq!(again.problem(409), "session_open"),
        }
    }
}

/// CL-7, SC-1: a fork of a session that is closed at the same moment is an agent of it that ends too, or is not made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fork_does_not_outlive_its_session() {
    let yard = Yard::open().await;
    yard.session("a").await;
    for _ in 0..100 {
        let forks = join_all((0..4).map(|_| yard.post(CALLER, "/sessions/a/agents", json!({}))));
        let (forks, closed) = futures::join!(forks, yard.delete(CALLER, "/sessions/a"));
        closed.with(202);
        for fork in forks {
            match fork.status.as_u16() {
                201 => {}
                409 => assert_eq!(fork.code(), "session_closing"),
                _ => assert_eq!(fork.problem(404), "not_found"),
            }
        }
        gone(&yard, "a").await;
    }
    yard.close().await;
}

/// SC-1, CL-5: a response that is still being written when its session closes breaks off, and keeps nothing of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_turn_does_not_outlive_its_session() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let (pieces, written) = mpsc::unbounded::<String>();
    let request = yard.request(CALLER, Method::POST, "/sessions/a/turns?from=anthropic");
    let body = Body::wrap_stream(written.map(Ok::<_, Infallible>));
    let start = json!({"type": "message_start", "message": {"role": "assistant", "content": []}});
    pieces.unbounded_send(format!("event: message_start\ndata: {start}\n\n")).unwrap();
    let answer = request.header("content-type", "text/event-stream").body(body).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    yard.delete(CALLER, "/sessions/a").await.with(202);
    let told = answer.text().await.unwrap();
    assert!(told.contains("event: broken") && told.contains("its session is closing"), "{told}");
    gone(&yard, "a").await;
    drop(pieces);
    yard.close().await;
}

/// SC-4: a call that cannot be cancelled yet is waited for once, however often it is cancelled.
#[tokio::test]
async fn repeated_cancels_are_one() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let first = yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    let calls = json!({"calls": [call("1", "gate", json!({})), call("2", "echo", json!({}))]});
    let path = format!("/sessions/a/turns?after={first}");
    let second = yard.post(CALLER, &path, calls).await.with(202)["turn"].as_u64().unwrap();
    let cancel = format!("/sessions/a/turns/{second}/calls/0/cancel");
    yard.post(CALLER, &cancel, Value::Null).await.with(202);
    let before = Handle::current().metrics().num_alive_tasks();
    for _ in 0..300 {
        yard.post(CALLER, &cancel, Value::Null).await.with(202);
    }
    // A connection may have been opened anew meanwhile.
    let more = Handle::current().metrics().num_alive_tasks().saturating_sub(before);
    assert!(more < 30, "{more} tasks more");
    yard.gate.add_permits(1);
    let results = yard.ended("a", second).await["results"]["results"].take();
    assert_eq!((&results[0]["error"]["code"], &results[1]["status"]), (&json!("cancelled"), &json!("ok")));
    yard.close().await;
}
