//! What a server takes up of an earlier life (HT-13, JR-1, JR-8, JR-10, SM-10). A life ends as by a kill: what was not recorded
//! by then is gone, and what still runs of it is not heard any more.

use crate::yard::{APPROVER, CALLER, OTHER, Yard, call};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use toolyard::{Drain, SessionId};
use toolyard_server::{Recovered, Scope, SecretHash, Token};
use toolyard_tests::Ledger;

/// The first life of a server.
pub(crate) async fn first(ledger: &Ledger) -> Yard {
    Yard::over(|builder| builder.recorder(ledger.clone()), |options| options).await
}

/// The life after one that was killed, with what it has taken up.
pub(crate) async fn after(ledger: &Ledger) -> (Yard, Recovered) {
    let yard = first(ledger).await;
    let recovered = yard.server.recover().unwrap();
    (yard, recovered)
}

/// The result of a call of a turn.
pub(crate) fn result(ended: &Value, at: usize) -> &Value {
    &ended["results"]["results"][at]
}

pub(crate) fn text(ended: &Value, at: usize) -> &str {
    result(ended, at)["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {ended}"))
}

pub(crate) fn save(id: &str, path: &str) -> Value {
    call(id, "save", json!({ "path": path }))
}

/// HT-13, JR-9: a turn that waits for an answer is there after a crash, with its question under its id, in a session with the
/// settings that it had; what had ended is not done again.
#[tokio::test]
async fn a_crash_is_a_pause() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    let asked = json!({"id": "a", "role": "builder", "capabilities": {"tools": ["save", "echo"]}});
    yard.post(CALLER, "/sessions", asked).await.with(201);
    let one = yard.turn("a", json!([save("1", "x")])).await;
    let question = yard.question("a").await;
    yard.post(
        APPROVER,
        &Yard::answers(&question),
        json!({"decision": "allow", "digest": question["digest"]}),
    )
    .await
    .with(200);
    assert_eq!(yard.ended("a", one).await["state"], "ended");
    let two = yard
        .turn("a", json!([save("2", "y"), call("3", "echo", json!({"n": 1})), call("4", "gate", json!({}))]))
        .await;
    let question = yard.question("a").await;

    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!((recovered.sessions, recovered.turns, recovered.left.len()), (1, 1, 0), "{recovered:?}");
    let session = next.get(CALLER, "/sessions/a").await.with(200);
    assert_eq!((&session["role"], &session["owner"]), (&json!("builder"), &json!("caller")));
    let again = next.question("a").await;
    assert_eq!(again["request_id"], question["request_id"]);
    assert_eq!(next.get(CALLER, &format!("/sessions/a/turns/{two}")).await.with(200)["state"], "waiting");
    next.post(APPROVER, &Yard::answers(&again), json!({"decision": "allow", "digest": again["digest"]}))
        .await
        .with(200);
    let ended = next.ended("a", two).await;
    assert_eq!(ended["state"], "ended");
    assert_eq!(text(&ended, 0), "saved y");
    assert_eq!(result(&ended, 2)["error"]["code"], "permission_denied", "it has no tool 'gate': {ended}");
    assert_eq!(next.saved.load(Ordering::Relaxed), 1);
    // What had ended before is read from its records.
    let ended = next.ended("a", one).await;
    assert_eq!((&ended["state"], text(&ended, 0)), (&json!("ended"), "saved x"));
    assert_eq!(next.saved.load(Ordering::Relaxed), 1, "it has not run again");
    let calls = json!({"calls": [call("5", "gate", json!({}))]});
    let three = next.post(CALLER, "/sessions/a/turns?wait=60", calls).await.with(200);
    assert_eq!(result(&three, 0)["error"]["code"], "permission_denied");
    next.close().await;
}

/// HT-1, JR-1: a request that comes again after a crash finds what it has made, whether or not that had ended; another body
/// under its key is refused.
#[tokio::test]
async fn a_key_outlives_a_crash() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let keyed = |yard: &Yard, key: &str, calls: Value| {
        let path = "/sessions/a/turns?to=neutral";
        let request = yard.request(CALLER, Method::POST, path).header("idempotency-key", key);
        request.header("prefer", "wait=60").json(&json!({ "calls": calls }))
    };
    let echo = json!([call("1", "echo", json!({"n": 1}))]);
    let ended = yard.sent(keyed(&yard, "ended", echo.clone())).await.with(200);
    let open = yard.request(CALLER, Method::POST, "/sessions/a/turns").header("idempotency-key", "open");
    let open = yard.sent(open.json(&json!({"calls": [save("2", "x")]}))).await.with(202);
    assert!(open.get("recorded").is_none(), "{open}");
    yard.question("a").await;

    let (next, _) = after(&ledger.crashed()).await;
    let again = next.sent(keyed(&next, "ended", echo)).await.with(200);
    assert_eq!((&again["turn"], &again["results"]), (&ended["turn"], &ended["results"]));
    let other = next.sent(keyed(&next, "ended", json!([call("1", "echo", json!({"n": 2}))]))).await;
    assert_eq!(other.problem(422), "idempotency_mismatch");
    let question = next.question("a").await;
    let (goes_on, ()) = futures::join!(next.sent(keyed(&next, "open", json!([save("2", "x")]))), async {
        let answer = json!({"decision": "allow", "digest": question["digest"]});
        next.post(APPROVER, &Yard::answers(&question), answer).await.with(200);
    });
    let goes_on = goes_on.with(200);
    assert_eq!((&goes_on["turn"], text(&goes_on, 0)), (&open["turn"], "saved x"));
    assert_eq!(next.saved.load(Ordering::Relaxed), 1);
    next.close().await;
}

/// HT-1: so does the key of a single call.
#[tokio::test]
async fn the_key_of_a_call_outlives_a_crash() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let echo = |yard: &Yard, n: u32| {
        let request = yard.request(CALLER, Method::POST, "/sessions/a/calls").header("idempotency-key", "k");
        request.json(&call("1", "echo", json!({ "n": n })))
    };
    let one = yard.sent(echo(&yard, 1)).await.with(200);
    let (next, _) = after(&ledger.crashed()).await;
    let again = next.sent(echo(&next, 1)).await.with(200);
    assert_eq!((&again["content"], &again["dedupe"]), (&one["content"], &json!("replayed")), "{again}");
    assert_eq!(next.sent(echo(&next, 2)).await.problem(422), "idempotency_mismatch");
    next.close().await;
}

/// CL-8: a stream that a crash has broken off is sent whole in the next life: what has run keeps its result.
#[tokio::test]
async fn a_stream_goes_on_in_the_next_life() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let (sender, body) = futures::channel::mpsc::unbounded::<Result<String, std::io::Error>>();
    let block = |index: u32, id: &str, n: u32| {
        let start = json!({"type": "content_block_start", "index": index,
            "content_block": {"type": "tool_use", "id": id, "name": "echo", "input": {"n": n}}});
        let stop = json!({"type": "content_block_stop", "index": index});
        format!("event: content_block_start\ndata: {start}\n\nevent: content_block_stop\ndata: {stop}\n\n")
    };
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}});
    sender
        .unbounded_send(Ok(format!("event: message_start\ndata: {start}\n\n{}", block(0, "1", 1))))
        .unwrap();
    let streaming =
        yard.request(CALLER, Method::POST, "/sessions/a/turns").header("content-type", "text/event-stream");
    let streaming = tokio::spawn(streaming.body(reqwest::Body::wrap_stream(body)).send());
    loop {
        let turns = yard.get(CALLER, "/turns?session=a").await.with(200);
        if turns["turns"][0]["finished"] == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }

    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!(recovered.turns, 1, "{recovered:?}");
    assert_eq!(next.get(CALLER, "/sessions/a/turns/1").await.with(200)["state"], "broken");
    let whole = json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": [
        {"type": "tool_use", "id": "1", "name": "echo", "input": {"n": 1}},
        {"type": "tool_use", "id": "2", "name": "echo", "input": {"n": 2}}]});
    let whole = next.request(CALLER, Method::PUT, "/sessions/a/turns/1?wait=60&to=neutral").json(&whole);
    let ended = next.sent(whole).await.with(200);
    assert_eq!((&ended["state"], &ended["format"]), (&json!("ended"), &json!("anthropic")), "{ended}");
    let shown = next.get(CALLER, "/sessions/a/turns/1?partial=true").await.with(200);
    let dedupe = |at: usize| shown["outcomes"][at]["dedupe"].clone();
    assert_eq!((dedupe(0), dedupe(1)), (json!("replayed"), json!("fresh")), "{shown}");
    streaming.abort();
    next.close().await;
}

/// SM-10: a drain suspends what waits. Whoever waits for it is told so, and the next life goes on with it.
#[tokio::test]
async fn a_drain_is_a_pause() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([save("1", "x")])).await;
    yard.question("a").await;
    let waiting = yard.request(CALLER, Method::GET, &format!("/sessions/a/turns/{turn}?wait=60"));
    let drain = async {
        yard.server.drain();
        yard.engine.shutdown(Drain::default()).await
    };
    let (told, _) = futures::join!(yard.sent(waiting), drain);
    let told = told.with(200);
    assert_eq!((&told["state"], told.get("results")), (&json!("suspended"), None), "{told}");

    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!(recovered.turns, 1);
    let question = next.question("a").await;
    next.post(
        APPROVER,
        &Yard::answers(&question),
        json!({"decision": "allow", "digest": question["digest"]}),
    )
    .await
    .with(200);
    assert_eq!(text(&next.ended("a", turn).await, 0), "saved x");
    next.close().await;
}

/// HT-7: the name of a session that somebody had belongs to him, also when it is closed: its keys have his results. A closed
/// one is not opened again.
#[tokio::test]
async fn a_name_belongs_to_whoever_had_it() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    yard.session("b").await;
    yard.delete(CALLER, "/sessions/b").await.with(202);
    // Of another program that writes the same journal.
    yard.engine.session("c").recorded().await.unwrap();

    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!(recovered.sessions, 1, "{recovered:?}");
    next.get(CALLER, "/sessions/a").await.with(200);
    next.get(CALLER, "/sessions/b").await.with(404);
    for name in ["a", "b", "c"] {
        assert_eq!(next.post(OTHER, "/sessions", json!({ "id": name })).await.problem(409), "session_open");
    }
    next.session("b").await;
    assert!(next.engine.find(&SessionId::from("b")).is_some());
    next.close().await;
}

/// CL-7, HT-13: agents with names are made again, with what they may; those without are not there any more.
#[tokio::test]
async fn agents_with_names_are_made_again() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let fork = json!({"name": "writer", "only_tools": ["save"]});
    yard.post(CALLER, "/sessions/a/agents", fork).await.with(201);
    yard.post(CALLER, "/sessions/a/agents", json!({})).await.with(201);
    let calls = json!({"calls": [save("1", "x"), call("2", "echo", json!({}))]});
    let turn = yard.post(CALLER, "/sessions/a/turns?agent=root/writer", calls).await.with(202)["turn"]
        .as_u64()
        .unwrap();
    yard.question("a").await;

    let (next, recovered) = after(&ledger.crashed()).await;
    assert_eq!((recovered.turns, recovered.left.len()), (1, 0), "{recovered:?}");
    let session = next.get(CALLER, "/sessions/a").await.with(200);
    assert_eq!(session["agents"], json!(["root", "root/writer"]));
    let question = next.question("a").await;
    next.post(APPROVER, &Yard::answers(&question), json!({"decision": "deny", "digest": question["digest"]}))
        .await
        .with(200);
    let ended = next.ended("a", turn).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "user_denied", "{ended}");
    assert_eq!(result(&ended, 1)["error"]["code"], "not_found", "it knows of no other tool: {ended}");
    next.close().await;
}

/// HT-13: what nobody is admitted to any more is left as it was, and said; the life after finds it.
#[tokio::test]
async fn what_nobody_may_have_is_left() {
    let ledger = Ledger::default();
    let visitor = |options: toolyard_server::ServerOptions| {
        options.token(Token::new("visitor", SecretHash::of("a visitor's secret"), [Scope::Call]))
    };
    let yard = Yard::over(|builder| builder.recorder(ledger.clone()), visitor).await;
    yard.post("a visitor's secret", "/sessions", json!({"id": "a"})).await.with(201);
    let calls = json!({"calls": [save("1", "x")]});
    yard.post("a visitor's secret", "/sessions/a/turns", calls).await.with(202);
    yard.question("a").await;

    let ledger = ledger.crashed();
    let (next, recovered) = after(&ledger).await;
    assert_eq!((recovered.sessions, recovered.turns), (0, 0));
    assert!(recovered.left[0].starts_with("session a: there is no token 'visitor'"), "{recovered:?}");
    drop(next);
    let last = Yard::over(|builder| builder.recorder(ledger.crashed()), visitor).await;
    assert_eq!(last.server.recover().unwrap().turns, 1);
    last.question("a").await;
    last.close().await;
}
