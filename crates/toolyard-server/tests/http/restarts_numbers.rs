//! A turn whose number was told is that turn in every later life, and no other one (HT-13, JR-10).

use crate::{
    restarts::{after, first, result, text},
    yard::{CALLER, call},
};
use futures::StreamExt as _;
use reqwest::Method;
use serde_json::json;
use std::time::Duration;
use toolyard_tests::Ledger;

/// HT-13, JR-10: the number of a streamed turn is told once it is recorded: in a later life the turn waits for its whole response,
/// and its number is given to no other one.
#[tokio::test]
async fn the_number_of_a_stream_is_told_when_it_is_kept() {
    let ledger = Ledger::paced(|| Duration::from_millis(50));
    let yard = first(&ledger).await;
    yard.session("a").await;
    let (_sender, body) = futures::channel::mpsc::unbounded::<Result<String, std::io::Error>>();
    let request = yard.request(CALLER, Method::POST, "/sessions/a/turns");
    let request = request.header("content-type", "text/event-stream").body(reqwest::Body::wrap_stream(body));
    let mut told = request.send().await.unwrap().bytes_stream();
    let told = told.next().await.unwrap().unwrap();
    assert!(told.starts_with(b"event: turn\n") && !told.windows(8).any(|it| it == b"recorded"), "{told:?}");

    let (next, _) = after(&ledger.crashed()).await;
    let two = json!({"calls": [call("1", "echo", json!({}))]});
    assert_eq!(next.post(CALLER, "/sessions/a/turns?wait=60", two).await.with(200)["turn"], 2);
    assert_eq!(next.get(CALLER, "/sessions/a/turns/1").await.with(200)["state"], "broken");
    next.close().await;
}

/// HT-3, HT-13: one that has waited and has begun goes on by itself.
#[tokio::test]
async fn what_has_waited_goes_on() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    let waits = json!({"calls": [call("2", "gate", json!({}))]});
    yard.post(CALLER, "/sessions/a/turns?after=1", waits).await.with(202);
    yard.gate.add_permits(1);
    assert_eq!(yard.ended("a", 1).await["state"], "ended");
    while ledger.crashed().open_in_next_life().iter().all(|open| open.turn != 2) {
        tokio::task::yield_now().await;
    }
    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!(recovered.turns, 1, "{recovered:?}");
    next.gate.add_permits(1);
    let ended = next.ended("a", 2).await;
    assert_eq!((&ended["state"], text(&ended, 0)), (&json!("ended"), "passed"), "{ended}");
    next.close().await;
}

/// HT-3, SC-4: a call of a turn that waits for another one can be cancelled, with a journal too: it does not run.
#[tokio::test]
async fn a_call_of_a_turn_that_waits_is_cancelled() {
    let yard = first(&Ledger::default()).await;
    yard.session("a").await;
    yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    let waits = json!({"calls": [call("2", "gate", json!({})), call("3", "echo", json!({"n": 3}))]});
    yard.post(CALLER, "/sessions/a/turns?after=1", waits).await.with(202);
    let cancel = yard.request(CALLER, Method::POST, "/sessions/a/turns/2/calls/0/cancel");
    yard.sent(cancel).await.with(202);
    yard.gate.add_permits(1);
    let ended = yard.ended("a", 2).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
    assert!(text(&ended, 1).contains('3'), "{ended}");
    yard.close().await;
}
