//! Which requests are admitted over HTTP, and what becomes of sessions. Requests are written by hand.

use super::yard::Yard;
use serde_json::json;
use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;
use toolyard_mcp::HttpOptions;

/// Sends a request with these header lines; returns the whole answer.
pub(crate) async fn ask(to: SocketAddr, method: &str, path: &str, headers: &[String], body: &str) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let (headers, length) = (headers.join("\r\n"), body.len());
    let request = format!(
        "{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n{headers}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

pub(crate) fn initialize() -> String {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).to_string()
}

/// Starts a gateway that listens, with these options.
pub(crate) async fn listen(yard: &Yard, options: HttpOptions) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, gateway) = (listener.local_addr().unwrap(), yard.gateway.clone());
    tokio::spawn(async move { gateway.serve_http(listener, options, CancellationToken::new()).await });
    address
}

/// A client's session over HTTP.
pub(crate) struct Door {
    to: SocketAddr,
    headers: [String; 2],
}

impl Door {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        let host = format!("host: {to}");
        let answer = ask(to, "POST", "/mcp", std::slice::from_ref(&host), &initialize()).await;
        let session = answer.lines().find(|line| line.starts_with("mcp-session-id: ")).unwrap().to_owned();
        let door = Self { to, headers: [host, session] };
        door.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string()).await;
        door
    }

    /// Posts this body; returns the status and body of the answer.
    pub(crate) async fn post(&self, body: &str) -> (u16, String) {
        let answer = ask(self.to, "POST", "/mcp", &self.headers, body).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// Posts a call, and leaves when the answer begins; returns whether it is the stream of a call that was accepted.
    pub(crate) async fn post_and_leave(&self, body: String) -> bool {
        let mut stream = TcpStream::connect(self.to).await.unwrap();
        let (headers, length) = (self.headers.join("\r\n"), body.len());
        let request = format!(
            "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n{headers}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = String::new();
        let mut lines = BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await.unwrap().filter(|line| !line.is_empty()) {
            head.push_str(&line);
        }
        head.contains("text/event-stream")
    }

    pub(crate) async fn delete(&self) {
        ask(self.to, "DELETE", "/mcp", &self.headers, "").await;
    }
}

/// Only a client that has the token, names this machine and is not a web page is admitted.
#[tokio::test]
async fn strangers_stay_outside() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default().token("s3cret")).await;
    let (host, token) = (format!("host: {to}"), "authorization: Bearer s3cret".to_owned());
    let page = "origin: http://evil.example".to_owned();
    let cases = [
        ("/mcp", vec![host.clone(), token.clone()], 200),
        ("/mcp", vec![host.clone()], 401),
        ("/mcp", vec![host.clone(), "authorization: Bearer other".to_owned()], 401),
        ("/mcp", vec!["host: evil.example".to_owned(), token.clone()], 403),
        ("/mcp", vec![host.clone(), token.clone(), page], 403),
        ("/", vec![host, token], 404),
    ];
    for (path, headers, expect) in cases {
        let answer = ask(to, "POST", path, &headers, &initialize()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expect} ")), "{path} {headers:?}: {answer}");
    }
    assert_eq!(yard.count("session.opened"), 0);
}

/// SC-1: deleting a session cancels its calls.
#[tokio::test]
async fn a_deleted_session_takes_its_calls_along() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let door = Arc::new(Door::open(to).await);
    let params = json!({"name": "slow", "arguments": {"secs": 3600}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let calling = tokio::spawn({
        let door = door.clone();
        async move { door.post(&call).await }
    });
    yard.until("dispatch.attempt").await;
    door.delete().await;
    yard.until("tool.failed").await;
    yard.until("session.closed").await;
    calling.abort();
}

/// A client that starts sessions and ends none is refused at some point; existing sessions keep working.
#[tokio::test]
async fn sessions_are_bounded() {
    let yard = Yard::open().await;
    let to = listen(&yard, HttpOptions::default()).await;
    let host = [format!("host: {to}")];
    let mut sessions = Vec::new();
    let turned_away = loop {
        let answer = ask(to, "POST", "/mcp", &host, &initialize()).await;
        match answer.lines().find(|line| line.starts_with("mcp-session-id: ")) {
            Some(session) if sessions.len() < 1000 => sessions.push(session.to_owned()),
            _ => break answer,
        }
    };
    assert!(turned_away.starts_with("HTTP/1.1 503 "), "{turned_away}");
    let own = [host[0].clone(), sessions.pop().unwrap()];
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert!(ask(to, "POST", "/mcp", &own, &ping).await.starts_with("HTTP/1.1 200 "));
    ask(to, "DELETE", "/mcp", &own, "").await;
    assert!(ask(to, "POST", "/mcp", &host, &initialize()).await.starts_with("HTTP/1.1 200 "));
}
