//! Two requests with the same id.

use super::{
    http::{Door, listen},
    yard::Yard,
};
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use tokio::{sync::Notify, task::JoinHandle};
use toolyard::{ToolContext, ToolSpec, tool_fn};
use toolyard_mcp::HttpOptions;

/// A second request under the id of an unanswered one is refused. The first gets its answer, which frees the id.
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
        let why = "the id 1 belongs to a request that is not answered yet: give every request its own id";
        assert_eq!(refused["message"], why);
    }
    assert_eq!(client.answer(1).await["result"]["content"][0]["text"], "slept");
    client.call(1, "write", json!({"n": 3}), json!({})).await;
    assert_eq!(client.answer(1).await["result"]["structuredContent"], json!({"n": 3}));
    assert_eq!(*yard.done.lock().unwrap(), ["slow {\"secs\":10}", "write {\"n\":3}"]);
}

/// The first request can still be cancelled. It is then never answered, so it keeps its id, both while it is being
/// cancelled and after it has ended: its outcome must not answer another request.
#[tokio::test(start_paused = true)]
async fn the_first_can_be_cancelled() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "slow", json!({"secs": 3600}), json!({})).await;
    client.call(1, "slow", json!({"secs": 3600}), json!({})).await;
    assert_eq!(client.answer(1).await["error"]["code"], -32600);
    yard.until("dispatch.attempt").await;
    client.notify("notifications/cancelled", json!({"requestId": 1})).await;
    client.call(1, "slow", json!({"secs": 5}), json!({})).await;
    assert_eq!(client.answer(1).await["error"]["code"], -32600);
    yard.until("tool.failed").await;
    client.call(1, "slow", json!({}), json!({})).await;
    assert_eq!(client.answer(1).await["error"]["code"], -32600);
    client.call(2, "slow", json!({}), json!({})).await;
    assert_eq!(client.answer(2).await["result"]["content"][0]["text"], "slept");
    assert_eq!(client.drain_sent().await, [] as [Value; 0]);
}

/// A gateway over HTTP with a tool `gate` that ends when notified.
async fn gated(yard: &Yard) -> (SocketAddr, Arc<Notify>) {
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
    (listen(yard, HttpOptions::default()).await, open)
}

fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params}).to_string()
}

/// Posts this in a task; returns the answer when there is one.
fn posted(door: &Arc<Door>, body: String) -> JoinHandle<(u16, String)> {
    let door = door.clone();
    tokio::spawn(async move { door.post(&body).await })
}

/// Whether a post was refused because of its id.
fn is_refused((status, answer): &(u16, String)) -> bool {
    let mut events = answer.lines().filter_map(|line| line.strip_prefix("data: "));
    let answer: Option<Value> = events.find_map(|event| serde_json::from_str(event).ok());
    let is_so = |answer: Value| answer["id"] == 1 && answer["error"]["code"] == -32600;
    *status == 200 && answer.is_some_and(is_so)
}

/// The same over HTTP, however the id is written. Another session may use the same ids.
#[tokio::test]
async fn the_first_has_its_answer_over_http() {
    let yard = Yard::open().await;
    let (to, open) = gated(&yard).await;
    let (door, other) = (Arc::new(Door::open(to).await), Door::open(to).await);
    let first = posted(&door, call(1, "gate", json!({})));
    yard.until("dispatch.attempt").await;
    for id in [json!(1), json!(1.0)] {
        let second = door.post(&call(id, "slow", json!({}))).await;
        assert!(is_refused(&second), "{second:?}");
    }
    assert!(other.post(&call(1, "slow", json!({}))).await.1.contains("slept"));
    open.notify_one();
    let (status, first) = first.await.unwrap();
    assert!(status == 200 && first.contains("open"), "{first}");
    assert!(door.post(&call(1, "slow", json!({}))).await.1.contains("slept"));
}

/// A broken connection ends no call over HTTP, because a client may come back for the answer. Meanwhile a second
/// request under the id is refused, and gets nothing of the first one's result. Its end frees the id.
#[tokio::test]
async fn who_comes_back_does_not_get_the_answer_of_the_first() {
    let yard = Yard::open().await;
    let (to, open) = gated(&yard).await;
    let door = Arc::new(Door::open(to).await);
    let first = posted(&door, call(1, "gate", json!({})));
    yard.until("dispatch.attempt").await;
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    let again = call(1, "slow", json!({}));
    // While it answers the first of these, the gateway notices that the connection is gone.
    for _ in 0..3 {
        let second = door.post(&again).await;
        assert!(is_refused(&second), "{second:?}");
    }
    open.notify_one();
    yard.until("tool.completed").await;
    // The answer follows a few steps after the end of the call.
    let mut second = door.post(&again).await;
    for _ in 0..1000 {
        if !is_refused(&second) {
            break;
        }
        second = door.post(&again).await;
    }
    assert!(second.1.contains("slept"), "{second:?}");
}

/// Over HTTP the post of a cancelled request ends without an answer, and the request keeps its id.
#[tokio::test]
async fn the_first_can_be_cancelled_over_http() {
    let yard = Yard::open().await;
    let door = Arc::new(Door::open(listen(&yard, HttpOptions::default()).await).await);
    let first = posted(&door, call(1, "slow", json!({"secs": 3600})));
    yard.until("dispatch.attempt").await;
    let params = json!({"requestId": 1});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    assert_eq!(door.post(&cancel.to_string()).await.0, 202);
    let (status, first) = first.await.unwrap();
    assert!(status == 200 && !first.contains("jsonrpc"), "{first}");
    yard.until("tool.failed").await;
    let second = door.post(&call(1, "slow", json!({}))).await;
    assert!(is_refused(&second), "{second:?}");
    assert!(door.post(&call(2, "slow", json!({}))).await.1.contains("slept"));
}
