//! Sessions, agents, definitions and events of a parent (AG-14).

use crate::parent::Parent;
use serde_json::{Value, json};
use std::time::Duration;
use toolyard::Engine;
use toolyard_server::{Bounds, ServerOptions};

/// AG-14: a session is opened with bounds, closed with its calls, and its name is free again.
#[tokio::test]
async fn a_session_is_opened_and_closed() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("read", "read")]).await;
    let open = json!({"op": "open", "session": "s", "limits": {"session_calls": 1}});
    assert_eq!(parent.ask(open.clone()).await, json!({"op": "opened", "id": "open", "session": "s"}));
    assert_eq!(parent.ask(open.clone()).await["code"], "session_open");
    for name in ["", "a/b", ".."] {
        assert_eq!(
            parent.ask(json!({"op": "open", "session": name})).await["errors"][0]["pointer"],
            "/session"
        );
    }
    let calls = json!([{"tool_call_id": "a", "tool": "read", "args": {}}, {"tool_call_id": "b", "tool": "read", "args": {}}]);
    parent.send(json!({"op": "tool_calls", "turn": "t", "session": "s", "calls": calls})).await;
    assert_eq!(parent.response("b").await["meta"]["code"], "budget_exceeded");
    let call = parent.invoked("read").await;
    parent.send(json!({"op": "close", "id": 1, "session": "s"})).await;
    assert_eq!(parent.line("tool_cancel").await["call_id"], call.as_str());
    parent
        .send(json!({"op": "tool_failed", "call_id": call, "message": "stopped", "kind": "cancelled"}))
        .await;
    assert_eq!(parent.response("a").await["meta"]["code"], "cancelled");
    parent.ended("t").await;
    assert_eq!(parent.line("closed").await, json!({"op": "closed", "id": 1, "session": "s"}));
    assert_eq!(parent.ask(open).await["op"], "opened");
    assert_eq!(parent.ask(json!({"op": "close", "session": "never"})).await["code"], "not_found");
}

/// AG-14: the open turns of a session that closes end, also those that wait for more calls.
#[tokio::test]
async fn a_growing_turn_ends_with_its_session() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    let call = json!([{"tool_call_id": "a", "tool": "read", "args": {}}]);
    let begin = json!({"op": "tool_calls", "turn": "t", "session": "s", "more": true, "calls": call});
    parent.send(begin.clone()).await;
    let invoked = parent.invoked("read").await;
    parent.result(&invoked, json!(1)).await;
    parent.response("a").await;
    parent.send(json!({"op": "close", "id": 1, "session": "s"})).await;
    assert_eq!(parent.ended("t").await["calls"], 1);
    parent.line("closed").await;
}

/// AG-14: a session that was opened with bounds and closed by somebody else does not come back without them.
#[tokio::test]
async fn bounds_are_not_lost_with_their_session() {
    let mut parent = Parent::with_operator().await;
    parent.functions(&[("read", "read")]).await;
    parent.ask(json!({"op": "open", "session": "s", "capabilities": {"tools": []}})).await;
    let session = parent.engine.find(&"s".into()).unwrap();
    assert_eq!(session.definitions().len(), 0);
    drop(session);
    parent.close_from_elsewhere("s").await;
    let call = json!([{"tool_call_id": "a", "tool": "read", "args": {}}]);
    parent.send(json!({"op": "tool_calls", "turn": "t", "session": "s", "calls": call})).await;
    let error = parent.line("error").await;
    assert_eq!((&error["code"], &error["turn"]), (&json!("session_closed"), &json!("t")));
    assert_eq!(parent.ask(json!({"op": "close", "session": "s"})).await["op"], "closed");
    parent.send(json!({"op": "tool_calls", "turn": "t", "session": "s", "calls": call})).await;
    parent.invoked("read").await;
}

/// AG-14: a name is free once its session is said to have closed, and what is opened under it stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_free_once_its_session_has_closed() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    let call = json!([{"tool_call_id": "a", "tool": "read", "args": {}}]);
    for round in 0..200 {
        for name in ["a", "b", "c"] {
            let open = parent.ask(json!({"op": "open", "session": name})).await;
            assert_eq!(open["op"], "opened", "round {round}: {open}");
            parent.send(json!({"op": "tool_calls", "turn": name, "session": name, "calls": call})).await;
        }
        for _ in 0..3 {
            let invoked = parent.invoked("read").await;
            parent.result(&invoked, json!(1)).await;
        }
        for name in ["a", "b", "c"] {
            parent.ended(name).await;
            assert_eq!(parent.ask(json!({"op": "close", "session": name})).await["op"], "closed");
        }
    }
}

/// AG-14: a turn that has ended leaves its place before it is told: as many as are allowed can be begun one after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_leaves_its_place_before_it_is_told() {
    let mut bounds = Bounds::default();
    bounds.turns_open_max = 1;
    let mut parent = Parent::of(Engine::builder(), ServerOptions::default().bounds(bounds)).await;
    for _ in 0..2_000 {
        parent.calls("t", &[("c", "none")]).await;
        let line = parent.until(|line| line["op"] == "turn_ended" || line["op"] == "error").await;
        assert_eq!(line["op"], "turn_ended", "{line}");
    }
}

/// AG-14: a session of a parent stays open, however long nothing happens in it.
#[tokio::test(start_paused = true)]
async fn an_idle_session_stays_open() {
    let mut parent = Parent::new().await;
    parent.ask(json!({"op": "open", "session": "s"})).await;
    tokio::time::advance(Duration::from_secs(10 * 3600)).await;
    parent.server.sweep();
    assert_eq!(parent.ask(json!({"op": "open", "session": "s"})).await["code"], "session_open");
}

/// AG-14, CL-7: a sub-agent knows the tools that it was given, and can only narrow them.
#[tokio::test]
async fn a_sub_agent_is_forked() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("read", "read"), ("other", "read")]).await;
    let fork = json!({"op": "fork", "name": "helper", "only_tools": ["read"]});
    assert_eq!(parent.ask(fork.clone()).await["agent"], "root/helper");
    let error = parent.ask(fork).await;
    assert_eq!((&error["op"], &error["code"]), (&json!("error"), &json!("not_forked")));
    let definitions =
        parent.ask(json!({"op": "definitions", "agent": "root/helper", "to": "anthropic"})).await;
    let names: Vec<&Value> =
        definitions["definitions"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read"]);
    let calls = json!([{"tool_call_id": "c", "tool": "other", "args": {}}]);
    parent.send(json!({"op": "tool_calls", "turn": "t", "agent": "root/helper", "calls": calls})).await;
    assert_eq!(parent.response("c").await["error"], "tool_not_found");
    parent.ended("t").await;
    parent.send(json!({"op": "tool_calls", "turn": "t", "agent": "root/nobody", "calls": calls})).await;
    assert_eq!(parent.line("error").await["code"], "not_found");
}

/// AG-14: definitions are those that the provider's API takes; an unknown format is an error.
#[tokio::test]
async fn definitions_have_a_format() {
    let mut parent = Parent::new().await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    parent
        .register(
            json!({"name": "add", "description": "Adds.", "side_effects": "none", "input_schema": schema}),
        )
        .await;
    for (to, pointer) in [
        ("openai-chat", "/0/function/name"),
        ("anthropic", "/0/name"),
        ("gemini", "/0/functionDeclarations/0/name"),
    ] {
        let answer = parent.ask(json!({"op": "definitions", "to": to})).await;
        let name = answer["definitions"].pointer(pointer);
        assert_eq!(name, Some(&json!("add")), "{answer}");
    }
    assert_eq!(parent.ask(json!({"op": "definitions", "to": "cobol"})).await["code"], "malformed");
}

/// AG-14, SM-9: events come as they are published, with cursors, and only those that are wanted.
#[tokio::test]
async fn events_are_told_if_they_are_wanted() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.ask(json!({"op": "hello", "protocol": 1, "events": ["tool.called", "tool.completed"]})).await;
    parent.calls("t", &[("c", "read")]).await;
    let call = parent.invoked("read").await;
    parent.result(&call, json!(1)).await;
    let (called, completed) = (parent.line("event").await, parent.line("event").await);
    assert_eq!(
        (&called["event"]["event"], &completed["event"]["event"]),
        (&json!("tool.called"), &json!("tool.completed")),
        "{called}"
    );
    assert!(called["cursor"].is_string() && called["event"]["call_id"] == "c");
    parent.ended("t").await;
    // Another hello loses none of those that are still wanted.
    parent.calls("u", &[("c", "read")]).await;
    let call = parent.invoked("read").await;
    parent.ask(json!({"op": "hello", "protocol": 1, "events": ["tool.called"]})).await;
    parent.result(&call, json!(1)).await;
    parent.ended("u").await;
    assert_eq!(parent.line("event").await["event"]["event"], "tool.called");
    parent.ask(json!({"op": "hello", "protocol": 1})).await;
    parent.calls("u", &[("c", "read")]).await;
    let call = parent.invoked("read").await;
    parent.result(&call, json!(1)).await;
    parent.ended("u").await;
    assert_eq!(parent.count("event"), 0);
}

/// HT-10: sessions and turns are bounded; what is beyond is an error, and nothing waits for it.
#[tokio::test]
async fn what_is_too_much_is_refused() {
    let mut bounds = Bounds::default();
    (bounds.sessions_max, bounds.turns_open_max) = (2, 1);
    let mut parent = Parent::of(Engine::builder(), ServerOptions::default().bounds(bounds)).await;
    parent.functions(&[("read", "read")]).await;
    for (session, op) in [("a", "opened"), ("b", "opened"), ("c", "error")] {
        assert_eq!(parent.ask(json!({"op": "open", "session": session})).await["op"], op);
    }
    let turn = |name: &str| json!({"op": "tool_calls", "turn": name, "session": "a", "calls": [{"tool_call_id": "c", "tool": "read", "args": {}}]});
    parent.send(turn("t")).await;
    let call = parent.invoked("read").await;
    parent.send(turn("u")).await;
    let error = parent.line("error").await;
    assert_eq!((&error["code"], &error["turn"]), (&json!("too_many"), &json!("u")));
    parent.send(turn("t")).await;
    assert_eq!(parent.line("error").await["code"], "turn_open");
    parent.result(&call, json!(1)).await;
    parent.ended("t").await;
    parent.send(turn("t")).await;
    parent.invoked("read").await;
}
