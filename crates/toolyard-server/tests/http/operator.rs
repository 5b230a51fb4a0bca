//! What an operator sees and changes.

use crate::yard::{APPROVER, CALLER, OPERATOR, SECOND, Yard, call};
use reqwest::Method;
use serde_json::{Value, json};
use toolyard_server::{Scope, SecretHash, Token};

async fn patched(yard: &Yard, class: &str, change: Value) -> crate::yard::Answer {
    yard.sent(yard.request(OPERATOR, Method::PATCH, &format!("/pools/{class}")).json(&change)).await
}

/// A pool is widened and paused while it is served, and what cannot be is refused.
#[tokio::test]
async fn a_pool_is_changed() {
    let yard = Yard::open().await;
    yard.session("a").await;
    assert_eq!(patched(&yard, "read", json!({"width": 3})).await.with(200)["width"], 3);
    assert_eq!(patched(&yard, "read", json!({"paused": true})).await.with(200)["state"], "paused");
    let turn = yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    yard.gate.add_permits(1);
    let waits = yard.get(CALLER, &format!("/sessions/a/turns/{turn}")).await.with(200);
    assert_eq!((&waits["state"], &waits["finished"]), (&json!("running"), &json!(0)));
    assert_eq!(patched(&yard, "read", json!({"paused": false})).await.with(200)["state"], "running");
    yard.ended("a", turn).await;
    assert_eq!(patched(&yard, "read", json!({"width": 0})).await.problem(422), "invalid");
    assert_eq!(patched(&yard, "read", json!({"wide": 1})).await.problem(422), "invalid");
    assert_eq!(patched(&yard, "other", json!({})).await.problem(404), "not_found");
    yard.close().await;
}

/// HT-6: pools and breakers are an operator's: whoever calls, approves or observes changes nothing.
#[tokio::test]
async fn only_an_operator_changes_pools_and_breakers() {
    let yard = Yard::open().await;
    let before = yard.get(OPERATOR, "/status").await.with(200);
    for secret in [CALLER, APPROVER, SECOND] {
        for change in [json!({"width": 9}), json!({"paused": true})] {
            let patch = yard.request(secret, Method::PATCH, "/pools/read").json(&change);
            assert_eq!(yard.sent(patch).await.problem(403), "scope_missing", "{change}");
        }
        for action in ["open", "close", "reset"] {
            let refused = yard.post(secret, &format!("/breakers/gate/{action}"), Value::Null).await;
            assert_eq!(refused.problem(403), "scope_missing", "{action}");
        }
    }
    let after = yard.get(OPERATOR, "/status").await.with(200);
    assert_eq!((&before["pools"], &before["breakers"]), (&after["pools"], &after["breakers"]));
    yard.close().await;
}

/// CB-10: a breaker is opened and closed by hand.
#[tokio::test]
async fn a_breaker_is_set() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let code = async || {
        let body = call("1", "gate", json!({}));
        yard.post(CALLER, "/sessions/a/calls", body).await.with(200)["error"]["code"].clone()
    };
    yard.gate.add_permits(2);
    assert_eq!(code().await, Value::Null);
    let set = async |path: &str| yard.post(OPERATOR, path, Value::Null).await;
    let is_open = async || {
        let metrics = yard.get(OPERATOR, "/metrics").await.with(200);
        metrics.as_str().unwrap().contains("toolyard_breaker_open{tool=\"gate\"} 1")
    };
    assert_eq!(set("/breakers/gate/open").await.status, 204);
    assert_eq!(code().await, "circuit_open");
    assert!(is_open().await);
    assert_eq!(set("/breakers/gate/close").await.status, 204);
    assert_eq!(code().await, Value::Null);
    assert!(!is_open().await, "one that is forced closed lets calls pass");
    for missing in ["/breakers/nobody/open", "/breakers/gate/toggle", "/breakers/cloud/open?of=sandbox"] {
        assert_eq!(set(missing).await.problem(404), "not_found", "{missing}");
    }
    assert_eq!(set("/breakers/gate/open?of=nonsense").await.problem(400), "malformed");
    yard.close().await;
}

/// OB-4: what is counted is there in the form that Prometheus reads.
#[tokio::test]
async fn metrics_count_what_is_open() {
    let yard = Yard::open().await;
    yard.session("a").await;
    yard.turn("a", json!([call("1", "save", json!({"path": "x"}))])).await;
    yard.question("a").await;
    let metrics = yard.get(OPERATOR, "/metrics").await.with(200);
    let metrics = metrics.as_str().unwrap();
    for line in [
        "toolyard_sessions 1",
        "toolyard_questions 1",
        "toolyard_streams 0",
        "toolyard_idempotency_answers 0",
        "toolyard_idempotency_answers_forgotten_total 0",
    ] {
        assert!(metrics.lines().any(|counted| counted == line), "{line}\n{metrics}");
    }
    yard.close().await;
}

/// HT-6: whoever has opened a session does not approve its calls, under whatever token of its name.
#[tokio::test]
async fn nobody_answers_for_his_own_session() {
    let yard = Yard::open().await;
    yard.session("a").await;
    yard.turn("a", json!([call("1", "save", json!({"path": "x"}))])).await;
    let question = yard.question("a").await;
    let approving = Token::new("caller", SecretHash::of("another secret"), [Scope::Approve]);
    let ada = Token::new("ada", SecretHash::of(APPROVER), [Scope::Approve]);
    yard.server.set_tokens(vec![approving, ada]).unwrap();
    let answer = json!({"decision": "allow", "digest": question["digest"]});
    let own = yard.post("another secret", &Yard::answers(&question), answer.clone()).await;
    assert_eq!(own.problem(403), "self_approval");
    yard.post(APPROVER, &Yard::answers(&question), answer).await.with(200);
    yard.close().await;
}
