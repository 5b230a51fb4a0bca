//! A client that sends what a test wants, in the order in which the test wants it.

use serde_json::{Value, json};
use std::collections::VecDeque;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split};

/// The capacity of the pipe, in bytes.
pub(crate) const PIPE: usize = 1 << 16;

/// One end of the pipe.
pub(crate) struct Client {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// Messages that were read and not asked for yet.
    kept: VecDeque<Value>,
}

impl Client {
    /// A client with these capabilities, after the handshake.
    pub(crate) async fn connect(end: DuplexStream, capabilities: Value) -> Self {
        let (read, write) = split(end);
        let mut client = Self { write, lines: BufReader::new(read).lines(), kept: VecDeque::new() };
        let info = json!({"name": "test client", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info});
        client.request(0, "initialize", params).await;
        client.answer(0).await;
        client.notify("notifications/initialized", json!({})).await;
        client
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    /// Sends a line, whatever it contains.
    pub(crate) async fn line(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn request(&mut self, id: i64, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Calls a tool, with this `_meta`.
    pub(crate) async fn call(&mut self, id: i64, tool: &str, arguments: Value, meta: Value) {
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        self.request(id, "tools/call", params).await;
    }

    /// The next matching message. Earlier ones are kept for later.
    pub(crate) async fn next(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_so) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let line = self.lines.next_line().await.unwrap().expect("the gateway is connected");
            let message: Value = serde_json::from_str(&line).unwrap();
            if is_so(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// The answer to this request.
    pub(crate) async fn answer(&mut self, id: i64) -> Value {
        self.next(|message| message["id"] == id && message.get("method").is_none()).await
    }

    /// The next request or notification of this method.
    pub(crate) async fn received(&mut self, method: &str) -> Value {
        self.next(|message| message["method"] == method).await
    }

    /// Everything received so far, except answers that were asked for.
    pub(crate) fn take_kept(&mut self) -> Vec<Value> {
        self.kept.drain(..).collect()
    }

    /// Waits until the gateway has handled everything sent before; returns what else it has sent by then.
    pub(crate) async fn drain_sent(&mut self) -> Vec<Value> {
        self.request(-1, "ping", json!({})).await;
        self.answer(-1).await;
        self.take_kept()
    }
}
