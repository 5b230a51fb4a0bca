//! Messages that are not requests, over a pipe and over HTTP.

use super::{
    client::PIPE,
    http::{Door, listen},
    yard::Yard,
};
use serde_json::{Value, json};
use std::io::Cursor;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;
use toolyard_mcp::HttpOptions;

/// A `tools/call` of `slow` with arguments of this depth.
fn deep(id: i64, levels: usize) -> String {
    let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let params = format!(r#"{{"name":"slow","arguments":{{"a":{value}}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

/// What is sent, and the id and code of the answer.
fn cases() -> Vec<(String, Value, i64)> {
    let call = |id: i64, meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"slow","_meta":{meta}}}}}"#
        )
    };
    vec![
        ("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\"".to_owned(), json!(null), -32700),
        ("nonsense".to_owned(), json!(null), -32700),
        ("[1, 2]".to_owned(), json!(null), -32600),
        (r#"{"jsonrpc":"2.0","id":[],"method":"tools/list"}"#.to_owned(), json!(null), -32600),
        (r#"{"jsonrpc":"1.0","id":2,"method":"tools/list"}"#.to_owned(), json!(2), -32600),
        (call(3, r#""text""#), json!(3), -32602),
        (call(4, "[]"), json!(4), -32602),
        (call(5, "17"), json!(5), -32602),
        (deep(6, 5000), json!(6), -32602),
        // Too many values to be parsed at all.
        (deep(7, 400_000), json!(7), -32600),
    ]
}

/// Each of them is answered, under its own id if it has one, and the connection still works.
#[tokio::test(start_paused = true)]
async fn a_line_that_is_no_request_is_answered() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(100, "slow", json!({"secs": 60}), json!({})).await;
    for (line, id, code) in cases() {
        client.line(&line).await;
        let answer = client.next(|message| message["id"] == id && message.get("method").is_none()).await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    }
    // These need no answer.
    client.line("").await;
    client.line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"_meta":5}}"#).await;
    client.line(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"an echo"}}"#).await;
    assert_eq!(client.drain_sent().await, [] as [Value; 0]);
    assert_eq!(client.answer(100).await["result"]["content"][0]["text"], "slept");
}

/// A line that is too long is reported, and calls in flight continue.
#[tokio::test]
async fn a_line_that_is_too_long_is_answered() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.line(&"x".repeat((1 << 20) + 1)).await;
    let answer = client.next(|message| message["id"].is_null() && message.get("error").is_some()).await;
    assert_eq!(answer["error"]["code"], -32600);
    client.call(1, "slow", json!({}), json!({})).await;
    assert_eq!(client.answer(1).await["result"]["content"][0]["text"], "slept");
}

/// A client that closes its end right after its last request is answered, with or without a line end.
#[tokio::test]
async fn a_last_line_needs_no_end() {
    let yard = Yard::open().await;
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let lines = [
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n").into_bytes();
    let (write, mut read) = tokio::io::duplex(PIPE);
    yard.gateway.serve(Cursor::new(lines), write, CancellationToken::new()).await.unwrap();
    let mut said = String::new();
    read.read_to_string(&mut said).await.unwrap();
    let last: Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
    assert!(last["id"] == 1 && last["result"]["tools"].is_array(), "{last}");
}

/// Arguments as deep as the engine accepts run; the engine itself refuses deeper ones as long as they can be read.
#[tokio::test(start_paused = true)]
async fn arguments_that_can_be_read_are_the_engines() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    for (id, levels, is_error) in [(1, 60, false), (2, 100, true)] {
        client.line(&deep(id, levels)).await;
        assert_eq!(client.answer(id).await["result"]["isError"], is_error, "{levels}");
    }
}

/// The same over HTTP: a request with an id is answered like any other, without one the whole post is bad.
#[tokio::test]
async fn a_post_that_is_no_request_is_answered() {
    let yard = Yard::open().await;
    let door = Door::open(listen(&yard, HttpOptions::default()).await).await;
    for (body, id, code) in cases() {
        let (status, answer) = door.post(&body).await;
        let shown: String = body.chars().take(80).collect();
        assert_eq!(status, if id.is_null() { 400 } else { 200 }, "{shown}: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(code)), "{shown}");
        assert!(answer.as_object().unwrap().contains_key("id"), "{answer}");
    }
    let (status, answer) = door.post(r#"{"jsonrpc":"2.0","method":"notifications/nobody/knows"}"#).await;
    assert_eq!((status, answer.as_str()), (202, ""));
    let call = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"slow"}}"#;
    let (status, answer) = door.post(call).await;
    assert!(status == 200 && answer.contains("slept"), "{answer}");
}
