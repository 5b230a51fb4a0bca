//! Functions that make calls themselves (CL-4, CC-6, CC-7).

use crate::parent::Parent;
use serde_json::{Value, json};
use toolyard::{Engine, PoolWidths};
use toolyard_server::ServerOptions;

fn within(turn: &str, call: &str, tool: &str) -> Value {
    json!({"op": "tool_calls", "turn": turn, "within": call, "calls": [{"tool_call_id": turn, "tool": tool, "args": {}}]})
}

/// CC-6: a function that waits for its calls holds no permit: in a pool of one place they run to any depth.
#[tokio::test]
async fn functions_call_functions_to_any_depth() {
    let mut widths = PoolWidths::default();
    widths.read = 1;
    let mut parent = Parent::of(Engine::builder().pools(widths), ServerOptions::default()).await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    let mut calls = vec![parent.invoked("read").await];
    for depth in 0..5 {
        let inner = calls.last().unwrap().clone();
        parent.send(within(&format!("n{depth}"), &inner, "read")).await;
        calls.push(parent.invoked("read").await);
    }
    for (depth, call) in calls.iter().enumerate().rev() {
        parent.result(call, json!(depth)).await;
        if depth > 0 {
            let response = parent.response(&format!("n{}", depth - 1)).await;
            assert_eq!(response["result"]["text"], depth.to_string());
            parent.ended(&format!("n{}", depth - 1)).await;
        }
    }
    assert_eq!(parent.response("c").await["result"]["text"], "0");
}

/// AG-14: calls of a function that has ended are cancelled and answered; its name calls nothing any more.
#[tokio::test]
async fn calls_that_are_left_behind_are_answered() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    let outer = parent.invoked("read").await;
    let two = json!([{"tool_call_id": "done", "tool": "read", "args": {}}, {"tool_call_id": "n", "tool": "read", "args": {}}]);
    parent.send(json!({"op": "tool_calls", "turn": "n", "within": outer, "calls": two})).await;
    let (done, inner) = (parent.invoked("read").await, parent.invoked("read").await);
    parent.result(&done, json!("paid")).await;
    assert_eq!(parent.response("done").await["result"]["text"], "paid", "it is answered as it ends");
    parent.result(&outer, json!("enough")).await;
    assert_eq!(parent.line("tool_cancel").await["call_id"], inner.as_str());
    let left = parent.response("n").await;
    assert_eq!(
        (&left["meta"]["code"], &left["meta"]["outcome"]),
        (&json!("cancelled"), &json!("unknown")),
        "{left}"
    );
    assert_eq!(parent.ended("n").await["failed"], 1);
    parent
        .send(json!({"op": "tool_failed", "call_id": inner, "message": "stopped", "kind": "cancelled"}))
        .await;
    parent.ended("t").await;
    let late = parent.ask(within("late", &outer, "read")).await;
    assert_eq!((&late["code"], &late["turn"]), (&json!("gone"), &json!("late")));
    assert_eq!(parent.ask(within("late", "i77", "read")).await["code"], "not_found");
}

/// AG-14: calls of a function are cancelled together.
#[tokio::test]
async fn calls_of_a_function_are_cancelled_together() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    let outer = parent.invoked("read").await;
    parent.send(within("n", &outer, "read")).await;
    let inner = parent.invoked("read").await;
    let one = parent.ask(json!({"op": "cancel", "turn": "n", "tool_call_id": "n"})).await;
    assert_eq!(one["code"], "invalid");
    parent.send(json!({"op": "cancel", "turn": "n"})).await;
    assert_eq!(parent.line("tool_cancel").await["call_id"], inner.as_str());
    // What it says by then is what has come of it.
    parent
        .send(json!({"op": "tool_failed", "call_id": inner, "message": "stopped", "kind": "cancelled"}))
        .await;
    assert_eq!(parent.ended("n").await["failed"], 1);
    parent.send(json!({"op": "tool_calls", "turn": "u", "after": "n", "calls": []})).await;
    parent.ended("u").await;
    parent.result(&outer, json!("went on")).await;
    assert_eq!(parent.response("c").await["result"]["text"], "went on");
}

/// AG-14, RT-11: calls of a function belong to the turn of its call: they have its name, and spend what it may spend.
#[tokio::test]
async fn calls_of_a_function_belong_to_its_turn() {
    let mut parent = Parent::new().await;
    parent.hello().await;
    parent.functions(&[("read", "read")]).await;
    parent.ask(json!({"op": "open", "session": "s", "limits": {"turn_calls": 2}})).await;
    let call = json!([{"tool_call_id": "c", "tool": "read", "args": {}}]);
    parent.send(json!({"op": "tool_calls", "turn": "t", "session": "s", "calls": call})).await;
    let outer = parent.invoked("read").await;
    parent.send(within("n", &outer, "read")).await;
    let inner = parent.line("tool_invoke").await;
    assert_eq!((&inner["turn"], &inner["session"]), (&json!("t"), &json!("s")));
    let inner = inner["call_id"].as_str().unwrap().to_owned();
    parent.send(json!({"op": "tool_delta", "call_id": inner, "text": "half"})).await;
    let delta = parent.line("tool_delta").await;
    assert_eq!((&delta["turn"], &delta["tool_call_id"]), (&json!("t"), &json!("n")));
    parent.result(&inner, json!(1)).await;
    parent.ended("n").await;
    parent.send(within("m", &outer, "read")).await;
    assert_eq!(parent.response("m").await["meta"]["code"], "budget_exceeded");
    assert_eq!(parent.ended("m").await["number"], 1);
    parent.result(&outer, json!(2)).await;
    assert_eq!(parent.ended("t").await["number"], 1);
}

/// AG-14: a function that runs when its parent says bye makes its calls still, and each batch ends by itself.
#[tokio::test]
async fn functions_call_on_after_bye() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    let outer = parent.invoked("read").await;
    parent.send(json!({"op": "bye"})).await;
    parent.send(within("a", &outer, "read")).await;
    let first = parent.invoked("read").await;
    parent.send(within("b", &outer, "read")).await;
    let second = parent.invoked("read").await;
    parent.result(&second, json!(2)).await;
    assert_eq!(parent.ended("b").await["failed"], 0, "the other one has not ended");
    parent.result(&first, json!(1)).await;
    parent.ended("a").await;
    parent.result(&outer, json!(0)).await;
    assert_eq!(parent.response("c").await["ok"], true);
    parent.line("goodbye").await;
}
