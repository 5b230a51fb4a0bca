//! Functions of a parent go through every stage, as any tool (AG-14, V1).

use crate::parent::Parent;
use serde_json::{Value, json};
use toolyard::{Engine, ToolContext, ToolSpec, tool_fn};
use toolyard_server::ServerOptions;

async fn failed(parent: &mut Parent, session: &str, tool: &str, args: Value) -> (Value, Value) {
    let calls = json!([{"tool_call_id": "c", "tool": tool, "args": args}]);
    parent.send(json!({"op": "tool_calls", "turn": "t", "session": session, "calls": calls})).await;
    let response = parent.response("c").await;
    parent.ended("t").await;
    (response["error"].clone(), response["meta"]["code"].clone())
}

/// AG-14, V1: names, capabilities and schemas are checked before a function hears of a call.
#[tokio::test]
async fn a_function_hears_of_no_call_that_may_not_run() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    // Keywords that a tool of this program would not have, as types of other languages need them.
    let schema = json!({"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}}, "$defs": {"N": {"type": "integer", "const": 1}}});
    parent.register(json!({"name": "add", "side_effects": "none", "input_schema": schema})).await;
    parent.ask(json!({"op": "open", "session": "narrow", "capabilities": {"tools": ["other"]}})).await;
    let no = |slug: &str, code: &str| (json!(slug), json!(code));
    assert_eq!(failed(&mut parent, "main", "sub", json!({})).await, no("tool_not_found", "not_found"));
    assert_eq!(
        failed(&mut parent, "main", "add", json!({"a": 2})).await,
        no("invalid_args", "invalid_input")
    );
    assert_eq!(failed(&mut parent, "main", "add", json!([1])).await, no("invalid_args", "invalid_input"));
    assert_eq!(
        failed(&mut parent, "narrow", "add", json!({"a": 1})).await,
        no("permission_denied", "permission_denied")
    );
    assert_eq!(parent.count("tool_invoke"), 0);
    parent.send(json!({"op": "tool_calls", "turn": "t", "calls": [{"tool_call_id": "c", "tool": "add", "args": {"a": 1}}]})).await;
    assert_eq!(parent.line("tool_invoke").await["args"], json!({"a": 1}));
}

/// AG-14, RT-1: what may pass is tried again, where the function may be.
#[tokio::test(start_paused = true)]
async fn a_function_is_tried_again() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.register(json!({"name": "read", "side_effects": "read", "attempts": 3})).await;
    parent.calls("t", &[("c", "read")]).await;
    for attempt in 1..=2 {
        let invoke = parent.line("tool_invoke").await;
        assert_eq!(invoke["attempt"], attempt);
        parent.send(json!({"op": "tool_failed", "call_id": invoke["call_id"], "message": "503", "kind": "transient"})).await;
    }
    let call = parent.invoked("read").await;
    parent.result(&call, json!("there")).await;
    let response = parent.response("c").await;
    assert_eq!((&response["ok"], &response["meta"]["attempts"]), (&json!(true), &json!(3)));
}

/// AG-14, V5: what a function says it failed by is what the model reads; a fault of its own is not.
#[tokio::test]
async fn a_failure_is_told_as_the_function_says() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("read", "read")]).await;
    for (kind, code, shown) in [
        (json!(null), "execution_error", true),
        (json!("invalid_input"), "invalid_input", true),
        (json!("permission_denied"), "permission_denied", true),
        (json!("internal"), "execution_error", false),
    ] {
        parent.calls("t", &[("c", "read")]).await;
        let call = parent.invoked("read").await;
        parent
            .send(json!({"op": "tool_failed", "call_id": call, "message": "no such row", "kind": kind}))
            .await;
        let response = parent.response("c").await;
        assert_eq!(response["meta"]["code"], code, "{response}");
        assert_eq!(response["message"].as_str().unwrap().contains("no such row"), shown, "{response}");
        parent.ended("t").await;
    }
}

/// AG-14, V3: a function that takes too long is told to stop, and what it says later is ignored.
#[tokio::test(start_paused = true)]
async fn a_function_is_cut_off() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.register(json!({"name": "slow", "side_effects": "none", "timeout_ms": 50, "attempts": 1})).await;
    parent.calls("t", &[("c", "slow")]).await;
    let invoke = parent.line("tool_invoke").await;
    assert_eq!(invoke["deadline_ms"], 50);
    assert_eq!(parent.response("c").await["meta"]["code"], "timeout");
    assert_eq!(parent.line("tool_cancel").await["call_id"], invoke["call_id"]);
    parent.result(invoke["call_id"].as_str().unwrap(), json!(1)).await;
    let never = parent.ask(json!({"op": "tool_result", "call_id": "i99", "result": 1})).await;
    assert_eq!(
        (&never["op"], &never["code"]),
        (&json!("error"), &json!("not_found")),
        "the first one is no error"
    );
}

/// AG-14: output before the end is told before the answer, to those who want it.
#[tokio::test]
async fn output_comes_before_the_answer() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("make", "none")]).await;
    parent.calls("t", &[("c", "make")]).await;
    let call = parent.invoked("make").await;
    for text in ["a", "b"] {
        parent.send(json!({"op": "tool_delta", "call_id": call, "text": text})).await;
    }
    parent.result(&call, json!("done")).await;
    let mut order = Vec::new();
    while order.last().is_none_or(|op| op != "turn_ended") {
        let line = parent.next().await.unwrap();
        order.push(line["op"].as_str().unwrap().to_owned());
        if line["op"] == "tool_delta" {
            assert_eq!((&line["turn"], &line["tool_call_id"]), (&json!("t"), &json!("c")));
        }
    }
    assert_eq!(order, ["tool_delta", "tool_delta", "tool_response", "turn_ended"]);
}

/// AG-14: a name that is registered again is another function from then on; those of other tools are not taken.
#[tokio::test]
async fn a_function_is_replaced_and_taken_away() {
    let own = tool_fn(ToolSpec::pure("own"), |(): (), _: ToolContext| async { Ok("own") });
    let mut parent = Parent::of(Engine::builder().tool(own), ServerOptions::default()).await;
    assert_eq!(parent.hello().await["tools"], json!(["own"]));
    let register = |name: &str, side_effects: &str| json!({"op": "register", "definition": {"name": name, "side_effects": side_effects}});
    assert_eq!(parent.ask(register("own", "none")).await["code"], "name_taken");
    assert_eq!(parent.ask(json!({"op": "unregister", "tool": "own"})).await["code"], "not_found");
    assert_eq!(parent.ask(register("f", "none")).await["class"], "read");
    assert_eq!(parent.ask(register("f", "write")).await["class"], "serial");
    assert_eq!(parent.ask(json!({"op": "unregister", "tool": "f"})).await["op"], "unregistered");
    assert_eq!(failed(&mut parent, "main", "f", json!({})).await.0, "tool_not_found");
    let bad = parent.ask(json!({"op": "register", "definition": {"name": "g", "side_effects": "none", "input_schema": {"type": 7}}})).await;
    assert_eq!(bad["code"], "invalid", "{bad}");
}
