//! Questions that a parent is asked (PO-3, PO-4).

use crate::parent::Parent;
use serde_json::{Value, json};
use std::time::Duration;
use toolyard::{Confirmations, Engine};
use toolyard_server::ServerOptions;

async fn asked(parent: &mut Parent, turn: &str) -> Value {
    let calls = json!([{"tool_call_id": "c", "tool": "save", "args": {"path": "a", "text": turn}}]);
    parent.send(json!({"op": "tool_calls", "turn": turn, "calls": calls})).await;
    parent.until(|line| line["op"] == "confirm" && line["turn"] == turn).await
}

fn answer(question: &Value, decision: &str, more: &Value) -> Value {
    let mut answer = json!({"op": "confirmation", "request_id": question["request_id"], "digest": question["digest"], "decision": decision});
    answer.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    answer
}

/// PO-3: a parent that does not want to be asked has its call refused at once.
#[tokio::test]
async fn without_anybody_to_ask_a_call_is_refused() {
    let mut parent = Parent::new().await;
    parent.ask(json!({"op": "hello", "protocol": 1, "meta": true})).await;
    parent.functions(&[("save", "write")]).await;
    parent.calls("t", &[("c", "save")]).await;
    assert_eq!(parent.response("c").await["meta"]["code"], "user_denied");
}

/// PO-4: a question is allowed, denied with a reason that the model reads, allowed with other arguments, or for good.
#[tokio::test]
async fn a_parent_answers() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("save", "write")]).await;
    let question = asked(&mut parent, "allow").await;
    assert_eq!(
        (&question["tool"], &question["arguments"]),
        (&json!("save"), &json!({"path": "a", "text": "allow"}))
    );
    assert!(question["sheet"].as_array().is_some_and(|rows| !rows.is_empty()));
    let confirmed = parent.ask(answer(&question, "allow", &json!({"who": "ada"}))).await;
    assert_eq!((&confirmed["op"], &confirmed["who"]), (&json!("confirmed"), &json!("ada")));
    let ended = parent.line("confirm_ended").await;
    assert_eq!((&ended["how"], &ended["who"]), (&json!("answered"), &json!("ada")));
    let call = parent.invoked("save").await;
    parent.result(&call, json!("saved")).await;
    assert_eq!(parent.response("c").await["ok"], true);

    let question = asked(&mut parent, "deny").await;
    let confirmed = parent.ask(answer(&question, "deny", &json!({"reason": "not on a Friday"}))).await;
    assert_eq!((&confirmed["decision"], &confirmed["who"]), (&json!("deny"), &json!("parent")));
    let denied = parent.response("c").await;
    assert!(denied["message"].as_str().unwrap().contains("not on a Friday"), "{denied}");

    let question = asked(&mut parent, "edit").await;
    parent.ask(answer(&question, "allow", &json!({"arguments": {"path": "b"}}))).await;
    let invoke = parent.line("tool_invoke").await;
    assert_eq!(invoke["args"], json!({"path": "b"}));
    parent.result(invoke["call_id"].as_str().unwrap(), json!("saved")).await;
    assert!(parent.response("c").await["note"].is_string());

    let question = asked(&mut parent, "always").await;
    parent.ask(answer(&question, "always", &json!({}))).await;
    let call = parent.invoked("save").await;
    parent.result(&call, json!("saved")).await;
    parent.ended("always").await;
    let calls = json!([{"tool_call_id": "c", "tool": "save", "args": {"path": "a", "text": "always"}}]);
    parent.send(json!({"op": "tool_calls", "turn": "again", "calls": calls})).await;
    parent.invoked("save").await;
}

/// PO-4: an answer for something else than what was shown does not count, and neither does a second one.
#[tokio::test]
async fn an_answer_counts_once_and_for_what_was_shown() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("save", "write")]).await;
    let question = asked(&mut parent, "t").await;
    let mut other = question.clone();
    other["digest"] = json!("0".repeat(64));
    let refused = parent.ask(answer(&other, "allow", &json!({}))).await;
    assert_eq!(
        (&refused["code"], &refused["question"]["digest"]),
        (&json!("digest_mismatch"), &question["digest"])
    );
    assert_eq!(parent.ask(answer(&question, "deny", &json!({}))).await["op"], "confirmed");
    assert_eq!(parent.ask(answer(&question, "allow", &json!({}))).await["code"], "already_resolved");
    let mut none = question.clone();
    none["request_id"] = json!("q");
    assert_eq!(parent.ask(answer(&none, "allow", &json!({}))).await["code"], "not_found");
}

/// PO-4: the parent is told how a question has ended that it did not answer.
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_ends() {
    let confirmations = Confirmations::default().timeout(Duration::from_secs(7));
    let options = ServerOptions::default().confirmations(confirmations.clone());
    let mut parent = Parent::of(Engine::builder().confirmations(confirmations), options).await;
    parent.hello().await;
    parent.functions(&[("save", "write")]).await;
    let question = asked(&mut parent, "t").await;
    assert_eq!(parent.response("c").await["meta"]["code"], "confirmation_timeout");
    assert_eq!(parent.line("confirm_ended").await["request_id"], question["request_id"]);

    let question = asked(&mut parent, "u").await;
    parent.send(json!({"op": "cancel", "turn": "u"})).await;
    let ended = parent.line("confirm_ended").await;
    assert_eq!((&ended["how"], &ended["request_id"]), (&json!("withdrawn"), &question["request_id"]));
    let late = parent.ask(answer(&question, "allow", &json!({}))).await;
    assert_eq!(late["code"], "withdrawn");
}
