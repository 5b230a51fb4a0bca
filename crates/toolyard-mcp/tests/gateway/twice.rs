//! Two requests under one id.

use super::{
    http::{Door, listen},
    yard::Yard,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::sync::Notify;
use toolyard::{ToolContext, ToolSpec, tool_fn};
use toolyard_mcp::HttpOptions;

/// A second request under the id of one that is not answered yet is refused, and the first has its own answer. When that
/// is there the id is free.
#[tokio::test(start_paused = true)]
async fn the_first_has_its_answer() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "slow", json!({"secs": 10}), json!({})).await;
    client.call(1, "write", json!({"n": 2}), json!({})).await;
    client.request(1, "tools/list", json!({})).await;
    for _ in 0..2 {
        let refused = client.answer(1).await["error"].clone();
        assert_eq!(refused["code"], -32600);
        let why = "the id 1 is that of a request that is not answered yet; every request needs its own";
        assert_eq!(refused["message"], why);
    }
    assert_eq!(client.answer(1).await["result"]["content"][0]["text"], "slept");
    client.call(1, "write", json!({"n": 3}), json!({})).await;
    assert_eq!(client.answer(1).await["result"]["structuredContent"], json!({"n": 3}));
    assert_eq!(*yard.done.lock().unwrap(), ["slow {\"secs\":10}", "write {\"n\":3}"]);
}

/// The first can still be cancelled, and a request that is cancelled has its id no more.
#[tokio::test(start_paused = true)]
async fn the_first_can_be_cancelled() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "slow", json!({"secs": 3600}), json!({})).await;
    client.call(1, "slow", json!({"secs": 3600}), json!({})).await;
    assert_eq!(client.answer(1).await["error"]["code"], -32600);
    yard.until("dispatch.attempt").await;
    client.notify("notifications/cancelled", json!({"requestId": 1})).await;
    yard.until("tool.failed").await;
    client.call(1, "slow", json!({}), json!({})).await;
    assert_eq!(client.answer(1).await["result"]["content"][0]["text"], "slept");
    assert_eq!(client.said_by_now().await, [] as [Value; 0]);
}

/// The same over HTTP, where another session may have the same ids.
#[tokio::test]
async fn the_first_has_its_answer_over_http() {
    let yard = Yard::open().await;
    let open = Arc::new(Notify::new());
    let gate = {
        let open = open.clone();
        tool_fn(ToolSpec::read("gate"), move |(): (), _: ToolContext| {
            let open = open.clone();
            async move {
                open.notified().await;
                Ok("open")
            }
        })
    };
    yard.engine.registry().register(gate).unwrap();
    let to = listen(&yard, HttpOptions::default()).await;
    let (door, other) = (Arc::new(Door::open(to).await), Door::open(to).await);
    let call = |tool: &str| {
        let params = json!({"name": tool, "arguments": {}});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    };
    let first = tokio::spawn({
        let (door, call) = (door.clone(), call("gate"));
        async move { door.post(&call).await }
    });
    yard.until("dispatch.attempt").await;
    let (status, second) = door.post(&call("slow")).await;
    let second: Value = serde_json::from_str(&second).unwrap();
    assert_eq!((status, &second["id"], &second["error"]["code"]), (200, &json!(1), &json!(-32600)));
    assert!(other.post(&call("slow")).await.1.contains("slept"));
    open.notify_one();
    let (status, first) = first.await.unwrap();
    assert!(status == 200 && first.contains("open"), "{first}");
    assert!(door.post(&call("slow")).await.1.contains("slept"));
}
