//! `Idempotency-Key`.

use crate::yard::{APPROVER, CALLER, OTHER, Yard, call};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

fn keyed(yard: &Yard, secret: &str, path: &str, key: &str, body: &Value) -> reqwest::RequestBuilder {
    yard.request(secret, Method::POST, path).header("idempotency-key", key).json(body)
}

/// HT-1: a repeat gets the first answer, beside it and after it; another body does not.
#[tokio::test]
async fn a_repeat_gets_the_first_answer() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let body = json!({"calls": [call("1", "gate", json!({}))]});
    let path = "/sessions/a/turns?wait=60";
    let beside = join_all((0..5).map(|_| yard.sent(keyed(&yard, CALLER, path, "k1", &body))));
    let release = async { yard.gate.add_permits(1) };
    let (beside, ()) = futures::join!(beside, release);
    let turns: Vec<_> = beside.iter().map(|answer| answer.body["turn"].as_u64()).collect();
    assert_eq!(turns, [Some(1); 5], "{beside:?}");
    let after = yard.sent(keyed(&yard, CALLER, path, "\"k1\"", &body)).await;
    assert_eq!(after.headers["idempotency-replayed"], "true");
    assert_eq!(after.with(200)["turn"], 1);
    let other = json!({"calls": [call("2", "echo", json!({}))]});
    assert_eq!(
        yard.sent(keyed(&yard, CALLER, path, "k1", &other)).await.problem(422),
        "idempotency_mismatch"
    );
    assert_eq!(yard.sent(keyed(&yard, CALLER, path, "k2", &other)).await.with(200)["turn"], 2);
    yard.close().await;
}

/// HT-1: a key belongs to its token and its path, and what was refused for the moment is not kept.
#[tokio::test]
async fn a_key_is_for_a_token_and_a_path() {
    let yard = Yard::open().await;
    let body = json!({});
    let one = yard.sent(keyed(&yard, CALLER, "/sessions", "k", &body)).await.with(201);
    let other = yard.sent(keyed(&yard, OTHER, "/sessions", "k", &body)).await.with(201);
    assert_ne!(one["id"], other["id"]);
    let path = format!("/sessions/{}/calls", one["id"].as_str().unwrap());
    let called = yard.sent(keyed(&yard, CALLER, &path, "k", &call("1", "echo", json!({})))).await;
    called.with(200);
    for _ in 0..2 {
        assert_eq!(
            yard.sent(keyed(&yard, APPROVER, "/sessions", "k", &body)).await.problem(403),
            "scope_missing"
        );
    }
    for bad in ["", "a b", "\"a"] {
        assert_eq!(yard.sent(keyed(&yard, CALLER, "/sessions", bad, &body)).await.problem(400), "malformed");
    }
    let streamed = yard.request(CALLER, Method::POST, &path).header("idempotency-key", "s");
    let streamed = streamed.header("content-type", "text/event-stream").body("data: {}\n\n");
    assert_eq!(yard.sent(streamed).await.problem(400), "malformed");
    yard.close().await;
}
