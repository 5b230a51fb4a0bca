//! What comes between two lives of a server: cancels, closes, streams, keys and records that are late (HT-13).

use crate::{
    restarts::{after, first, result, save, text},
    yard::{APPROVER, CALLER, OPERATOR, Yard, call},
};
use futures::{FutureExt as _, channel::mpsc::unbounded};
use reqwest::{Body, Method};
use serde_json::{Value, json};
use std::{sync::atomic::Ordering, time::Duration};
use toolyard::{Drain, Durable, RecordError, Recorder, SessionOptions, SessionRecord};
use toolyard_tests::Ledger;

async fn allow(yard: &Yard, question: &Value) {
    let answer = json!({"decision": "allow", "digest": question["digest"]});
    yard.post(APPROVER, &Yard::answers(question), answer).await.with(200);
}

/// SM-10: what is suspended can still be cancelled, and does not go on then.
#[tokio::test]
async fn a_cancel_reaches_what_is_suspended() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([save("1", "x")])).await;
    yard.question("a").await;
    yard.server.drain();
    yard.engine.shutdown(Drain::default()).await;
    assert_eq!(yard.get(CALLER, "/sessions/a/turns/1").await.with(200)["state"], "suspended");
    yard.sent(yard.request(CALLER, Method::POST, "/sessions/a/turns/1/cancel")).await.with(202);

    let (next, _) = after(&ledger.crashed()).await;
    let ended = next.ended("a", turn).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
    next.close().await;
}

/// JR-10: a session that is closed takes with it what an earlier life has left open under its name.
#[tokio::test]
async fn a_close_reaches_what_was_left() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    yard.turn("a", json!([save("1", "x")])).await;
    yard.question("a").await;
    // This life takes nothing up.
    let second = first(&ledger.crashed()).await;
    let ledger = ledger.crashed();
    drop(second);
    let third = first(&ledger).await;
    third.session("a").await;
    assert_eq!(third.get(CALLER, "/sessions/a/turns/1").await.problem(409), "left_open");
    third.delete(CALLER, "/sessions/a").await.with(202);

    let ledger = ledger.crashed();
    let (fourth, recovered) = after(&ledger).await;
    assert_eq!(recovered.sessions, 0, "{recovered:?}");
    assert_eq!(recovered.settled().await, Vec::<String>::new());
    fourth.session("a").await;
    let again = fourth.request(CALLER, Method::PUT, "/sessions/a/turns/1?wait=60&to=neutral");
    let put = fourth.sent(again.json(&json!({"calls": [save("1", "x")]}))).await;
    assert_eq!(put.problem(410), "gone", "it has ended in this life, without anybody who waited for it");
    let (last, _) = after(&ledger.crashed()).await;
    assert_eq!(result(&last.ended("a", 1).await, 0)["error"]["code"], "cancelled");
    assert_eq!(fourth.saved.load(Ordering::Relaxed), 0);
    assert_eq!(last.saved.load(Ordering::Relaxed), 0);
    last.close().await;
}

/// A stream of calls of `echo`, and its end if it has one; it breaks off within a further call otherwise.
fn stream(calls: &[&str], has_end: bool) -> String {
    let mut text = String::new();
    let mut event =
        |data: Value| text += &format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    event(
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}}),
    );
    for (index, id) in calls.iter().enumerate() {
        event(json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": id, "name": "echo", "input": {"id": id}}}));
        event(json!({"type": "content_block_stop", "index": index}));
    }
    match has_end {
        true => {
            event(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
            event(json!({"type": "message_stop"}));
        }
        false => event(json!({"type": "content_block_start", "index": calls.len(),
            "content_block": {"type": "tool_use", "id": "cut", "name": "echo", "input": {}}})),
    }
    text
}

fn streaming(yard: &Yard) -> reqwest::RequestBuilder {
    yard.request(CALLER, Method::POST, "/sessions/a/turns").header("content-type", "text/event-stream")
}

/// HT-13: a stream that came whole is a turn like any other in the next life; one that broke off, also before the crash, goes
/// on when its response is sent whole.
#[tokio::test]
async fn streams_are_as_whole_as_they_were() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    for has_end in [true, false] {
        streaming(&yard).body(stream(&["1"], has_end)).send().await.unwrap().text().await.unwrap();
    }
    assert_eq!(yard.get(CALLER, "/sessions/a/turns/2").await.with(200)["state"], "broken");

    let (next, _) = after(&ledger.crashed()).await;
    let whole = next.get(CALLER, "/sessions/a/turns/1").await.with(200);
    assert_eq!((&whole["state"], &whole["format"]), (&json!("ended"), &json!("anthropic")), "{whole}");
    let response = json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "tool_use", "id": "1", "name": "echo", "input": {"id": "1"}},
        {"type": "tool_use", "id": "2", "name": "echo", "input": {"id": "2"}}]});
    let sent = next.request(CALLER, Method::PUT, "/sessions/a/turns/2?wait=60&to=neutral").json(&response);
    let ended = next.sent(sent).await.with(200);
    assert_eq!(text(&ended, 1), "{\"id\":\"2\"}");
    let shown = next.get(CALLER, "/sessions/a/turns/2?partial=true").await.with(200);
    assert_eq!(shown["outcomes"][0]["dedupe"], "replayed", "{shown}");
    next.close().await;
}

/// SM-10, CL-8: a response that is sent whole while the server ends is not run in pieces: all of it goes on later.
#[tokio::test]
async fn what_is_sent_again_in_a_drain_is_suspended() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let (sender, body) = unbounded::<Result<String, std::io::Error>>();
    let saving =
        stream(&["1"], false).replace("\"echo\"", "\"save\"").replace("{\"id\":\"1\"}", "{\"path\":\"x\"}");
    sender.unbounded_send(Ok(saving)).unwrap();
    let sending = streaming(&yard).body(Body::wrap_stream(body)).send();
    let sending = tokio::spawn(async move { sending.await.unwrap().text().await });
    let question = yard.question("a").await;
    drop(sender);
    let response = json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "tool_use", "id": "1", "name": "save", "input": {"path": "x"}}]});
    let again = loop {
        let put = yard.request(CALLER, Method::PUT, "/sessions/a/turns/1").json(&response);
        let put = yard.sent(put).await;
        if put.status.as_u16() == 202 {
            break put.body; // it had broken off by then
        }
        assert_eq!(put.problem(409), "not_broken");
    };
    assert_eq!(again["recorded"], false, "{again}");
    yard.server.drain();
    yard.engine.shutdown(Drain::default()).await;
    let _ = sending.await;
    let told = yard.get(CALLER, "/sessions/a/turns/1?wait=60").await.with(200);
    assert_eq!((&told["state"], told.get("results")), (&json!("suspended"), None), "{told}");

    let (next, _) = after(&ledger.crashed()).await;
    let asked = next.question("a").await;
    assert_eq!(asked["request_id"], question["request_id"]);
    allow(&next, &asked).await;
    let put = next.request(CALLER, Method::PUT, "/sessions/a/turns/1?wait=60&to=neutral").json(&response);
    assert_eq!(text(&next.sent(put).await.with(200), 0), "saved x");
    assert_eq!(next.saved.load(Ordering::Relaxed), 1);
    next.close().await;
}

/// HT-1, HT-13: a key is looked for before all else that a request says; another format is another request.
#[tokio::test]
async fn a_key_comes_first() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let one = yard
        .post(CALLER, "/sessions/a/turns?wait=60", json!({"calls": [call("1", "echo", json!({}))]}))
        .await;
    let path = format!("/sessions/a/turns?wait=60&after={}", one.with(200)["turn"]);
    let keyed = |yard: &Yard, body: &Value| {
        yard.request(CALLER, Method::POST, &path).header("idempotency-key", "k").json(body)
    };
    let body = json!({"calls": [call("2", "echo", json!({}))]});
    let turn = yard.sent(keyed(&yard, &body)).await.with(200)["turn"].clone();

    let (next, _) = after(&ledger.crashed()).await;
    assert_eq!(next.sent(keyed(&next, &body)).await.with(200)["turn"], turn);
    let other = json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "tool_use", "id": "2", "name": "echo", "input": {}}]});
    assert_eq!(next.sent(keyed(&next, &other)).await.problem(422), "idempotency_mismatch");
    // A turn that has ended in an earlier life is nothing to wait for.
    let unkeyed = next.post(CALLER, &path, json!({"calls": [call("3", "echo", json!({}))]})).await;
    assert_eq!(unkeyed.with(200)["state"], "ended");
    next.close().await;
}

/// HT-13: a session that another program has used under its name is still its owner's.
#[tokio::test]
async fn others_who_use_a_session_do_not_take_it() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([save("1", "x")])).await;
    yard.question("a").await;
    let ledger = ledger.crashed();
    let program = toolyard_tests::yard(|builder, _| builder.recorder(ledger.clone())).await;
    program.engine.open("a", SessionOptions::default()).unwrap().recorded().await.unwrap();
    drop(program);

    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!((recovered.sessions, recovered.turns), (1, 1), "{recovered:?}");
    allow(&next, &next.question("a").await).await;
    assert_eq!(text(&next.ended("a", turn).await, 0), "saved x");
    next.close().await;
}

/// JR-1: nothing is acknowledged before it is recorded.
#[tokio::test]
async fn what_is_acknowledged_is_recorded() {
    let ledger = Ledger::paced(|| Duration::from_millis(20));
    let yard = first(&ledger).await;
    let opened = yard.post(CALLER, "/sessions", json!({"id": "a"})).await.with(201);
    assert_eq!(ledger.crashed().len(), 2, "the life and its session: {opened}");
    yard.post(CALLER, "/sessions/a/agents", json!({"name": "one"})).await.with(201);
    assert_eq!(ledger.crashed().len(), 3);
    let turn = yard.turn("a", json!([save("1", "x"), call("2", "gate", json!({}))])).await;
    assert!(ledger.crashed().len() >= 4, "its batch");
    yard.sent(yard.request(CALLER, Method::POST, &format!("/sessions/a/turns/{turn}/cancel")))
        .await
        .with(202);
    let (next, _) = after(&ledger.crashed()).await;
    let ended = next.ended("a", turn).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
    yard.delete(CALLER, "/sessions/a").await.with(202);
    let (last, recovered) = after(&ledger.crashed()).await;
    assert_eq!(recovered.sessions, 0, "{recovered:?}");
    last.close().await;
    next.close().now_or_never();
}

/// A journal whose disk is full.
struct Full;

impl Recorder for Full {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn fault(&self) -> Option<std::sync::Arc<str>> {
        Some("the disk is full".into())
    }

    fn session(&self, _: &SessionRecord<'_>) -> Durable {
        Durable::when(async { Err(RecordError::new("the disk is full")) })
    }
}

/// HT-13, JR-12: what cannot be recorded is not acknowledged, and the server says that it is not ready, and why.
#[tokio::test]
async fn a_journal_that_cannot_be_written_is_told_of() {
    let yard = Yard::over(|builder| builder.recorder(Full), |options| options).await;
    let refused = yard.post(CALLER, "/sessions", json!({"id": "a"})).await;
    assert_eq!(refused.problem(503), "not_recorded");
    assert!(refused.headers.contains_key("retry-after"));
    yard.get(CALLER, "/sessions/a").await.with(404);
    assert_eq!(yard.get(OPERATOR, "/readyz").await.problem(503), "journal");
    assert_eq!(yard.get(OPERATOR, "/status").await.with(200)["journal_fault"], "the disk is full");
    yard.close().await;
}
