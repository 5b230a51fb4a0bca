//! How much clients may send and hold, over HTTP and over a pipe.

use super::{
    client::PIPE,
    http::{Door, ask, initialize, listen},
    yard::Yard,
};
use futures::future::join_all;
use serde_json::{Value, json};
use std::{io::ErrorKind, net::SocketAddr};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};
use tokio_util::sync::CancellationToken;
use toolyard_mcp::{ClientLimits, HttpOptions};

/// An `initialize` with this much of what nobody knows.
fn large_initialize(bytes: usize) -> String {
    let mut message: Value = serde_json::from_str(&initialize()).unwrap();
    message["params"]["capabilities"] = json!({"experimental": {"x": {"y": "z".repeat(bytes)}}});
    message.to_string()
}

fn call(id: u32, arguments: Value) -> String {
    let params = json!({"name": "slow", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap()
}

/// Of clients that start sessions at once no more get one than there may be.
#[tokio::test]
async fn sessions_opened_at_once_are_bounded() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let host = [format!("host: {to}")];
    let opening = initialize();
    let answers = join_all((0..400).map(|_| ask(to, "POST", "/mcp", &host, &opening))).await;
    let opened = answers.iter().filter(|answer| status(answer) == "200").count();
    let refused = answers.iter().filter(|answer| status(answer) == "503").count();
    assert_eq!((opened, refused), (256, 144));
}

/// Before a session exists a message has at most 64 KiB, after that 1 MiB.
#[tokio::test]
async fn a_client_may_send_more_once_it_has_a_session() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let host = [format!("host: {to}")];
    assert_eq!(status(&ask(to, "POST", "/mcp", &host, &large_initialize(60 << 10)).await), "200");
    assert_eq!(status(&ask(to, "POST", "/mcp", &host, &large_initialize(64 << 10)).await), "413");
    let strange = [host[0].clone(), "mcp-session-id: nobody".to_owned()];
    assert_eq!(status(&ask(to, "POST", "/mcp", &strange, &large_initialize(64 << 10)).await), "413");
    assert_eq!(status(&ask(to, "POST", "/mcp", &strange, &initialize()).await), "404");
    let door = Door::open(to).await;
    assert_eq!(door.post(&call(1, json!({"x": "x".repeat(200 << 10)}))).await.0, 200);
    assert_eq!(door.post(&call(2, json!({"x": "x".repeat(1 << 20)}))).await.0, 413);
}

/// The same over a pipe, where a line that is too long is answered and the client can go on.
#[tokio::test]
async fn a_line_may_be_longer_once_there_is_a_session() {
    let yard = Yard::open().await;
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let gateway = yard.gateway.clone();
    let serving = tokio::spawn(async move {
        let (read, write) = tokio::io::split(ours);
        gateway.serve(read, write, CancellationToken::new()).await
    });
    let (read, mut write) = tokio::io::split(theirs);
    let mut lines = BufReader::new(read).lines();
    let sent = [
        (large_initialize(64 << 10), json!(null), false),
        (large_initialize(60 << 10), json!(0), true),
        (call(1, json!({"x": "x".repeat(200 << 10)})), json!(1), true),
        (call(2, json!({"x": "x".repeat(1 << 20)})), json!(null), false),
        (call(3, json!({})), json!(3), true),
    ];
    for (line, id, is_read) in sent {
        let sending = async { write.write_all(format!("{line}\n").as_bytes()).await.unwrap() };
        let (_, answer) = tokio::join!(sending, lines.next_line());
        let answer: Value = serde_json::from_str(&answer.unwrap().unwrap()).unwrap();
        assert_eq!((&answer["id"], answer.get("result").is_some()), (&id, is_read), "{answer}");
        if id == 0 {
            write
                .write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
                .await
                .unwrap();
        }
    }
    drop((write, lines));
    serving.await.unwrap().unwrap();
}

/// V4: over all clients, requests that are not answered yet take no more than they may. A call that finds no room is
/// told so and that it has not run; answers and cancellations get through; and there is room again when calls have
/// ended.
#[tokio::test]
async fn requests_in_flight_are_bounded_over_all_clients() {
    let mut yard = Yard::open().await;
    yard.gateway = yard.gateway.client_limits(ClientLimits::default().in_flight_bytes(1 << 20));
    let to = listen(&yard, HttpOptions::default()).await;
    let doors = join_all((0..3).map(|_| Door::open(to))).await;
    // Each takes about 100 KiB: a client may have three of them in flight, and all clients seven.
    let nasty = |id| call(id, json!({"secs": 3600, "x": vec![json!({"": 0}); 120]}));
    let mut refused = Vec::new();
    for door in &doors {
        let mut id = 1;
        while door.post_and_leave(nasty(id)).await {
            id += 1;
        }
        refused.push(door.post(&nasty(id)).await);
    }
    while yard.count("tool.called") < 7 {
        tokio::task::yield_now().await;
    }
    for (status, answer) in refused {
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let error = &answer["error"]["data"]["toolyard/error"];
        assert_eq!((status, &answer["error"]["code"]), (200, &json!(-32603)), "{answer}");
        assert_eq!(
            (&error["code"], &error["outcome"]),
            (&json!("overloaded"), &json!("not_started")),
            "{answer}"
        );
        assert_eq!((&error["retryable"], &error["retry_after_ms"]), (&json!(true), &json!(1000)), "{answer}");
    }
    assert_eq!(yard.count("tool.called"), 7);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(doors[0].post(&cancel.to_string()).await.0, 202);
    yard.until("tool.failed").await;
    let small = call(100, json!({}));
    while doors[0].post(&small).await.1.contains("overloaded") {
        tokio::task::yield_now().await;
    }
}

/// The same over a pipe.
#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded_over_a_pipe() {
    let mut yard = Yard::open().await;
    yard.gateway = yard.gateway.client_limits(ClientLimits::default().in_flight_bytes(1 << 20));
    let mut client = yard.client().await;
    for id in 1..=8 {
        client.call(id, "slow", json!({"secs": 60, "x": vec![json!({"": 0}); 120]}), json!({})).await;
    }
    let refused = client.answer(8).await;
    assert_eq!(refused["error"]["data"]["toolyard/error"]["code"], "overloaded", "{refused}");
    assert_eq!(client.answer(1).await["result"]["content"][0]["text"], "slept");
    client.call(9, "slow", json!({}), json!({})).await;
    assert_eq!(client.answer(9).await["result"]["content"][0]["text"], "slept");
}

/// A message whose values would take too much is refused before it is parsed, however few bytes it has.
#[tokio::test]
async fn many_values_count_more_than_their_bytes() {
    let yard = Yard::open().await;
    let door = Door::open(listen(&yard, HttpOptions::default()).await).await;
    let (status, answer) = door.post(&call(1, json!({"x": vec![0; 400_000]}))).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(
        (status, &answer["id"], &answer["error"]["code"]),
        (200, &json!(1), &json!(-32600)),
        "{answer}"
    );
    assert_eq!(door.post(&call(2, json!({}))).await.0, 200);
}

/// Sends what is written; returns the status of the answer.
async fn raw(to: SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let body = initialize();
    let common =
        "connection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream";
    let request = format!("POST {head}\r\n{common}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    status(&answer).to_owned()
}

/// A request that a proxy could read differently is refused: a header that decides and is there twice, or a target at
/// another host.
#[tokio::test]
async fn a_head_that_can_be_read_in_two_ways_is_refused() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let own = format!("origin: http://{to}");
    let cases = [
        (format!("/mcp HTTP/1.1\r\nhost: {to}\r\n{own}"), "200"),
        (format!("http://{to}/mcp HTTP/1.1\r\nhost: {to}"), "200"),
        (format!("/mcp HTTP/1.1\r\nhost: {to}\r\nhost: evil.example"), "400"),
        (format!("/mcp HTTP/1.1\r\nhost: {to}\r\nhost: {to}"), "400"),
        (format!("/mcp HTTP/1.1\r\nhost: {to}\r\n{own}\r\norigin: http://evil.example"), "400"),
        (format!("http://evil.example/mcp HTTP/1.1\r\nhost: {to}"), "400"),
        (format!("http://{to}/mcp HTTP/1.1\r\nhost: evil.example"), "400"),
    ];
    for (head, expect) in cases {
        assert_eq!(raw(to, &head).await, expect, "{head}");
    }
}

/// Connections that say nothing keep nobody waiting: the oldest of them are closed.
#[tokio::test]
async fn silent_connections_are_closed_for_new_ones() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let mut silent = Vec::new();
    for _ in 0..1024 {
        silent.push(TcpStream::connect(to).await.unwrap());
    }
    let answer = ask(to, "POST", "/mcp", &[format!("host: {to}")], &initialize()).await;
    assert_eq!(status(&answer), "200");
    let is_open = |stream: &TcpStream| matches!(stream.try_read(&mut [0; 1]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    // The client had a place among the last 512 until its request was admitted.
    let (old, new) = silent.split_at(1024 - 511);
    for stream in old {
        stream.readable().await.unwrap();
        assert!(!is_open(stream));
    }
    assert!(new.iter().all(is_open));
}
