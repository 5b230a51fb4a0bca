//! Turns of a parent: what goes in, in which order it runs, and what comes out (AG-14, CL-3, CL-5).

use crate::parent::Parent;
use serde_json::{Value, json};
use toolyard::Engine;
use toolyard_server::ServerOptions;

/// A model's answer of one call of `add` in each provider's format, and where the result stands in what goes back.
fn messages() -> [(Value, &'static str, &'static str); 4] {
    [
        (
            json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]}),
            "openai-chat",
            "/0/content",
        ),
        (
            json!({"output": [{"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{\"a\":1}"}]}),
            "openai-responses",
            "/0/output",
        ),
        (
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}]}),
            "anthropic",
            "/0/content/0/content",
        ),
        (
            json!({"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"a": 1}}}]}}]}),
            "gemini",
            "/0/parts/0/functionResponse/response/output",
        ),
    ]
}

/// AG-14: a provider's message goes in as it came, and a list of what its API takes next comes out.
#[tokio::test]
async fn a_providers_message_goes_in_and_the_next_ones_come_out() {
    let mut parent = Parent::new().await;
    parent.functions(&[("add", "none")]).await;
    for (at, (message, from, pointer)) in messages().into_iter().enumerate() {
        let turn = format!("t{at}");
        parent.send(json!({"op": "respond", "turn": turn, "message": message})).await;
        let call = parent.invoked("add").await;
        parent.result(&call, json!("three")).await;
        let ended = parent.ended(&turn).await;
        assert_eq!((&ended["calls"], &ended["failed"]), (&json!(1), &json!(0)), "{ended}");
        let result = ended["results"].pointer(pointer).unwrap_or_else(|| panic!("{from}: {ended}"));
        assert!(result.to_string().contains("three"), "{from}: {ended}");
    }
    // In another format than it came in, and in the neutral one, a list of results.
    let (message, ..) = messages()[0].clone();
    for (to, pointer) in [("anthropic", "/0/content/0/tool_use_id"), ("neutral", "/0/call_id")] {
        parent.send(json!({"op": "respond", "turn": to, "message": message, "to": to})).await;
        let call = parent.invoked("add").await;
        parent.result(&call, json!(3)).await;
        let ended = parent.ended(to).await;
        assert_eq!(ended["results"].pointer(pointer), Some(&json!("c1")), "{ended}");
    }
}

/// AG-14: with `each`, every call of a provider's message is answered by itself too, as it ends.
#[tokio::test]
async fn each_call_of_a_message_is_answered_if_that_is_wanted() {
    let mut parent = Parent::new().await;
    parent.functions(&[("add", "none")]).await;
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "add", "arguments": "{}"}});
    let message = json!({"role": "assistant", "tool_calls": [call("a"), call("b")]});
    parent.send(json!({"op": "respond", "turn": "t", "each": true, "message": message})).await;
    let (first, second) = (parent.invoked("add").await, parent.invoked("add").await);
    parent.result(&second, json!("2")).await;
    let response = parent.line("tool_response").await;
    assert_eq!(
        (&response["tool_call_id"], &response["index"], &response["tool"]),
        (&json!("b"), &json!(1), &json!("add"))
    );
    parent.result(&first, json!("1")).await;
    let response = parent.line("tool_response").await;
    assert_eq!((&response["index"], &response["result"]["text"]), (&json!(0), &json!("1")));
    assert_eq!(parent.ended("t").await["results"].as_array().unwrap().len(), 2);
}

/// AG-14, CL-3: calls of a turn have the effect of one after another, and turns run side by side: those of one session wait
/// for each other's writes, those of others do not.
#[tokio::test]
async fn writes_of_a_session_wait_for_each_other() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.ask(json!({"op": "open", "session": "other"})).await;
    parent.register(json!({"name": "save", "side_effects": "write"})).await;
    let always = |mut parent: Parent| async move {
        let asked = parent.line("confirm").await;
        let (id, digest) = (&asked["request_id"], &asked["digest"]);
        parent
            .send(json!({"op": "confirmation", "request_id": id, "digest": digest, "decision": "allow"}))
            .await;
        parent
    };
    for turn in ["a", "b"] {
        parent.calls(turn, &[("c", "save")]).await;
        parent = always(parent).await;
    }
    let first = parent.invoked("save").await;
    parent.send(json!({"op": "tool_calls", "turn": "o", "session": "other", "calls": [{"tool_call_id": "c", "tool": "save", "args": {}}]})).await;
    parent = always(parent).await;
    let elsewhere = parent.line("tool_invoke").await;
    assert_eq!(elsewhere["session"], "other", "the second write of the first session waits");
    parent.result(&first, json!(1)).await;
    let second = parent.line("tool_invoke").await;
    assert_eq!((&second["session"], &second["turn"]), (&json!("main"), &json!("b")));
}

/// AG-14, CL-5: a turn goes on by further lines, whose calls run beside what is there, until it is said that none follow.
#[tokio::test]
async fn a_turn_goes_on_while_its_calls_run() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    let calls = |id: &str, continues: bool| {
        let call = json!({"tool_call_id": id, "tool": "read", "args": {}});
        json!({"op": "tool_calls", "turn": "t", "more": true, "continues": continues, "calls": [call]})
    };
    parent.send(calls("a", false)).await;
    let first = parent.invoked("read").await;
    parent.send(calls("b", true)).await;
    let second = parent.invoked("read").await;
    parent.result(&second, json!(2)).await;
    assert_eq!(parent.response("b").await["index"], 1);
    parent.result(&first, json!(1)).await;
    parent.response("a").await;
    // Its name is taken as long as it is open, its ids for as long too; what is refused leaves it as it was.
    let twice = parent.ask(calls("a", true)).await;
    assert_eq!(
        (&twice["op"], &twice["turn"], &twice["errors"][0]["pointer"]),
        (&json!("error"), &json!("t"), &json!("/calls/0/tool_call_id"))
    );
    parent.send(json!({"op": "turn_end", "turn": "t"})).await;
    let ended = parent.ended("t").await;
    assert_eq!((&ended["calls"], &ended["results"]), (&json!(2), &Value::Null));
    let late = parent.ask(json!({"op": "turn_end", "turn": "t"})).await;
    assert_eq!(late["code"], "not_found");
    // What was on its way when the turn ended begins no other one.
    let late = parent.ask(calls("c", true)).await;
    assert_eq!((&late["code"], parent.count("tool_invoke")), (&json!("not_found"), 0));
}

/// AG-14: a turn without calls ends at once, with nothing for a provider.
#[tokio::test]
async fn a_message_without_calls_has_no_results() {
    let mut parent = Parent::new().await;
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "done"}]});
    parent.send(json!({"op": "respond", "turn": "t", "message": message})).await;
    assert_eq!(parent.ended("t").await["results"], json!([]));
}

/// AG-14: a turn that waits for another begins when that has ended; one that waits for none that is open begins at once.
#[tokio::test]
async fn a_turn_waits_for_another() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("a", &[("1", "read")]).await;
    let first = parent.invoked("read").await;
    let call = json!([{"tool_call_id": "2", "tool": "read", "args": {}}]);
    parent.send(json!({"op": "tool_calls", "turn": "b", "after": "a", "calls": call})).await;
    parent.send(json!({"op": "tool_calls", "turn": "c", "after": "long ago", "calls": call})).await;
    let next = parent.line("tool_invoke").await;
    assert_eq!(next["turn"], "c");
    parent.result(&first, json!(1)).await;
    let next = parent.line("tool_invoke").await;
    assert_eq!(next["turn"], "b");
}

/// AG-14: many turns at once, each with its own answers.
#[tokio::test]
async fn many_turns_run_at_once() {
    let mut options = toolyard_server::Bounds::default();
    options.turns_open_max = 300;
    let mut parent = Parent::of(Engine::builder(), ServerOptions::default().bounds(options)).await;
    parent.functions(&[("read", "read")]).await;
    for turn in 0..200 {
        parent.calls(&format!("t{turn}"), &[("c", "read")]).await;
    }
    for _ in 0..200 {
        let invoke = parent.line("tool_invoke").await;
        let turn = invoke["turn"].clone();
        parent.result(invoke["call_id"].as_str().unwrap(), turn).await;
    }
    for turn in 0..200 {
        let turn = format!("t{turn}");
        let response =
            parent.until(|line| line["op"] == "tool_response" && line["turn"] == turn.as_str()).await;
        assert_eq!(response["result"]["text"], turn.as_str());
        parent.ended(&turn).await;
    }
}

/// AG-14, ID-1: a key that is sent in two turns runs once.
#[tokio::test]
async fn keys_hold_over_turns() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("pay", "none")]).await;
    let call = json!([{"tool_call_id": "c", "tool": "pay", "args": {"sum": 1}, "meta": {"idempotency_key": "order-17"}}]);
    parent.send(json!({"op": "tool_calls", "turn": "a", "calls": call})).await;
    let invoke = parent.line("tool_invoke").await;
    assert_eq!(invoke["key"], "order-17");
    parent.result(invoke["call_id"].as_str().unwrap(), json!("paid")).await;
    parent.ended("a").await;
    parent.send(json!({"op": "tool_calls", "turn": "b", "calls": call})).await;
    parent.ended("b").await;
    let (first, second) = (parent.response("c").await, parent.response("c").await);
    assert_eq!((&first["meta"]["dedupe"], &second["meta"]["dedupe"]), (&json!("fresh"), &json!("replayed")));
    assert_eq!((&second["result"]["text"], parent.count("tool_invoke")), (&json!("paid"), 0));
}

/// AG-14, SC-4: one call is cancelled, or all of a turn, one that waits for another included; each is answered.
#[tokio::test]
async fn calls_and_turns_are_cancelled() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("a", &[("1", "read"), ("2", "read")]).await;
    let (one, two) = (parent.invoked("read").await, parent.invoked("read").await);
    parent.send(json!({"op": "tool_calls", "turn": "b", "after": "a", "calls": [{"tool_call_id": "3", "tool": "read", "args": {}}]})).await;
    parent.send(json!({"op": "cancel", "turn": "b"})).await;
    let response = parent.response("3").await;
    assert_eq!((&response["error"], &response["meta"]["code"]), (&json!("tool_failed"), &json!("cancelled")));
    parent.send(json!({"op": "cancel", "turn": "a", "tool_call_id": "1"})).await;
    assert_eq!(parent.line("tool_cancel").await["call_id"], one.as_str());
    parent
        .send(json!({"op": "tool_failed", "call_id": one, "message": "stopped", "kind": "cancelled"}))
        .await;
    assert_eq!(parent.response("1").await["meta"]["code"], "cancelled");
    parent.result(&two, json!(2)).await;
    assert_eq!(parent.response("2").await["ok"], true);
    parent.ended("a").await;
    // What has ended is not cancelled, and nothing is said of it.
    parent.send(json!({"op": "cancel", "turn": "a"})).await;
    assert_eq!(parent.ask(json!({"op": "bye"})).await["op"], "goodbye");
}
