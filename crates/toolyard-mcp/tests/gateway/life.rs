//! Connections: many at once, their end, and the end of the engine.

use super::yard::Yard;
use serde_json::json;
use std::time::Duration;
use toolyard::{Drain, ToolContext, ToolSpec, tool_fn};

/// SC-1, SC-4: when a client disconnects its calls are cancelled; those of others continue.
#[tokio::test(start_paused = true)]
async fn a_client_that_is_gone_takes_its_calls_along() {
    let yard = Yard::open().await;
    let (mut gone, serving) = yard.connect(json!({})).await;
    let mut stays = yard.client().await;
    gone.call(1, "slow", json!({"secs": 3000}), json!({})).await;
    gone.call(2, "ask", json!({}), json!({})).await;
    stays.call(1, "slow", json!({"secs": 60}), json!({})).await;
    yard.until("dispatch.attempt").await;
    drop(gone);
    serving.await.unwrap().unwrap();
    assert_eq!(stays.answer(1).await["result"]["content"][0]["text"], "slept");
    yard.until("session.closed").await;
    let ends = ["tool.failed", "tool.call.denied", "tool.completed"].map(|name| yard.count(name));
    assert_eq!(ends, [1, 1, 1]);
    assert_eq!(yard.count("session.opened"), 2);
}

/// Every connection has its own session, which is named after its client.
#[tokio::test(start_paused = true)]
async fn sessions_are_named_after_their_clients() {
    let yard = Yard::open().await;
    for _ in 0..2 {
        let mut client = yard.client().await;
        client.call(1, "slow", json!({}), json!({})).await;
        client.answer(1).await;
    }
    let events = yard.events.lock().unwrap();
    let opened = events.iter().filter(|event| event.kind.name() == "session.opened");
    let names: Vec<&str> = opened.map(|event| event.session.as_str()).collect();
    assert_eq!(names, ["test_client-1", "test_client-2"]);
}

/// SC-8: an engine that shuts down answers every call of every client.
#[tokio::test(start_paused = true)]
async fn a_drain_answers_every_call() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    for id in 1..=30 {
        client.call(id, "slow", json!({"secs": 3000}), json!({})).await;
    }
    yard.until("dispatch.attempt").await;
    yard.engine.shutdown(Drain::default().finish(Duration::ZERO)).await;
    for id in 1..=30 {
        let answer = client.answer(id).await;
        let code = answer["result"]["_meta"]["toolyard/error"]["code"].as_str().unwrap();
        assert!(matches!(code, "cancelled" | "shutting_down"), "{code}");
    }
}

/// A client is notified when there are other tools, and then finds them.
#[tokio::test(start_paused = true)]
async fn a_client_is_notified_of_new_tools() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.request(1, "tools/list", json!({})).await;
    assert_eq!(client.answer(1).await["result"]["tools"].as_array().unwrap().len(), 4);
    let fresh = tool_fn(ToolSpec::pure("fresh"), |(): (), _: ToolContext| async { Ok("") });
    yard.engine.registry().register(fresh).unwrap();
    client.received("notifications/tools/list_changed").await;
    client.request(2, "tools/list", json!({})).await;
    assert_eq!(client.answer(2).await["result"]["tools"].as_array().unwrap().len(), 5);
}
