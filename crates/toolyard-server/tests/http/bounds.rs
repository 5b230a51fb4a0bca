//! What a server takes at once, and that others are served meanwhile (HT-10).

use crate::yard::{APPROVER, CALLER, OPERATOR, OTHER, Yard, call};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection of its own.
struct Wire(TcpStream);

impl Wire {
    async fn open(yard: &Yard) -> Self {
        Self(TcpStream::connect(yard.address).await.unwrap())
    }

    async fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// A request without a body.
    async fn get(&mut self, yard: &Yard, secret: &str, path: &str) {
        let address = yard.address;
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {secret}\r\n\r\n");
        self.send(&head).await;
    }

    /// The status of the next answer.
    async fn status(&mut self) -> u16 {
        let mut line = [0; 12];
        self.0.read_exact(&mut line).await.unwrap();
        std::str::from_utf8(&line[9..]).unwrap().parse().unwrap()
    }

    /// What is still to be read, until the server closes.
    async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A connection that is closed while something is unread is reset.
        let _ = self.0.read_to_end(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// Two connections of the approver, on each of which a stream is open.
async fn two_streams(yard: &Yard) -> [Wire; 2] {
    let mut open = [Wire::open(yard).await, Wire::open(yard).await];
    for wire in &mut open {
        wire.get(yard, APPROVER, "/events").await;
        assert_eq!(wire.status().await, 200);
    }
    open
}

/// Connections that say nothing, or begin a head and never end it, are closed for others; nobody waits for them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_keep_nobody_waiting() {
    let yard = Yard::bounded(|bounds| (bounds.strangers_max, bounds.connections_max) = (16, 8)).await;
    let mut silent = Vec::new();
    for number in 0..300 {
        let mut wire = Wire::open(&yard).await;
        if number % 2 == 0 {
            wire.send("POST /sessions HTTP/1.1\r\nhost: ").await;
        }
        silent.push(wire);
        if number % 50 == 0 {
            yard.get(OPERATOR, "/status").await.with(200);
        }
    }
    let mut new = Wire::open(&yard).await;
    new.get(&yard, OPERATOR, "/status").await;
    assert_eq!(new.status().await, 200);
    for mut wire in silent.drain(..250) {
        assert_eq!(wire.rest().await, "");
    }
    yard.close().await;
}

/// Connections of those who are admitted are bounded too; a further one is told so, and closed.
#[tokio::test]
async fn connections_are_bounded() {
    let yard = Yard::bounded(|bounds| bounds.connections_max = 2).await;
    let open = two_streams(&yard).await;
    let mut late = Wire::open(&yard).await;
    late.get(&yard, OTHER, "/sessions").await;
    assert_eq!(late.status().await, 503);
    let rest = late.rest().await;
    assert!(rest.contains("retry-after: 1") && rest.contains("\"busy\""), "{rest}");
    // Whoever needs no token is answered.
    let mut probe = Wire::open(&yard).await;
    probe.send(&format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", yard.address)).await;
    assert_eq!(probe.status().await, 200);
    drop(open);
    while yard.sent(yard.request(OTHER, Method::GET, "/sessions")).await.status != 200 {}
    yard.close().await;
}

/// Ten thousand streams of one token that read nothing: as many as it may have are open, the others are told so and
/// closed, and another token is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_streams_keep_nobody_waiting() {
    // A user's machine may not let a program open that many files.
    let is_full = std::env::var("CI").is_ok_and(|ci| ci == "true");
    let (most, asked) = if is_full { (2048, 10_000) } else { (200, 2_000) };
    let yard = Yard::bounded(|bounds| bounds.streams_max = most).await;
    yard.session("a").await;
    let mut open = Vec::new();
    for number in 0..asked {
        let mut wire = Wire::open(&yard).await;
        wire.get(&yard, APPROVER, "/events?after=0").await;
        match wire.status().await {
            200 => open.push(wire),
            429 => assert!(wire.rest().await.contains("connection: close")),
            other => panic!("{other}"),
        }
        if number % 100 == 0 {
            yard.post(CALLER, "/sessions/a/calls", call("1", "echo", json!({}))).await.with(200);
        }
    }
    assert_eq!(open.len(), most);
    assert_eq!(yard.get(OPERATOR, "/status").await.with(200)["streams"], most);
    yard.post(OTHER, "/sessions", json!({})).await.with(201);
    drop(open);
    yard.close().await;
}

/// Whatever is too large is refused as that, and the server goes on.
#[tokio::test]
async fn whatever_is_too_large_is_refused() {
    let yard = Yard::bounded(|bounds| bounds.body_bytes_max = 1 << 20).await;
    yard.session("a").await;
    let get = |path: String| yard.request(CALLER, Method::GET, &path);
    let long = "x".repeat(20 << 10);
    for (what, request) in [
        ("a header", get("/sessions".into()).header("x-long", &long)),
        ("a path", get(format!("/sessions/{long}"))),
        ("a query", get(format!("/sessions?cursor={long}"))),
        ("headers", (0..200).fold(get("/sessions".into()), |get, n| get.header(format!("x-{n}"), "1"))),
    ] {
        let status = request.send().await.unwrap().status().as_u16();
        assert!([414, 431].contains(&status), "{what}: {status}");
    }
    let post =
        |path: &str| yard.request(CALLER, Method::POST, path).header("content-type", "application/json");
    let large = vec![b' '; (1 << 20) + 1];
    for path in ["/sessions", "/sessions/a/turns", "/sessions/a/calls"] {
        assert_eq!(yard.sent(post(path).body(large.clone())).await.problem(413), "body_too_large");
        let chunks =
            large.chunks(1000).map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec())).collect::<Vec<_>>();
        let chunked = post(path).body(reqwest::Body::wrap_stream(futures::stream::iter(chunks)));
        assert_eq!(yard.sent(chunked).await.problem(413), "body_too_large");
    }
    let deep = "[".repeat(100_000);
    assert_eq!(yard.sent(post("/sessions").body(deep.clone())).await.problem(400), "malformed");
    assert_eq!(yard.sent(post("/sessions/a/turns").body(deep)).await.problem(422), "response");
    let name = json!({"id": "n".repeat(129)});
    yard.post(CALLER, "/sessions", name).await.problem(422);
    yard.get(CALLER, "/sessions/a").await.with(200);
    yard.close().await;
}

/// Questions of a token are bounded: a call that needs a further one is refused, and told why; others are asked.
#[tokio::test]
async fn questions_are_bounded() {
    let yard = Yard::bounded(|bounds| bounds.questions_max = 2).await;
    for id in ["a", "b"] {
        yard.session(id).await;
        yard.turn(id, json!([call("1", "save", json!({"path": "x"}))])).await;
        yard.question(id).await;
    }
    let third = yard.turn("a", json!([call("1", "save", json!({"path": "y"}))])).await;
    let refused = yard.ended("a", third).await["results"]["results"][0].take();
    assert_eq!(refused["error"]["code"], "user_denied", "{refused}");
    assert!(refused.to_string().contains("2 questions are open already"), "{refused}");
    yard.post(OTHER, "/sessions", json!({"id": "c"})).await.with(201);
    let other = json!({"calls": [call("1", "save", json!({"path": "z"}))]});
    yard.post(OTHER, "/sessions/c/turns", other).await.with(202);
    yard.question("c").await;
    yard.close().await;
}

/// The connections of one token are bounded, so that others have room.
#[tokio::test]
async fn connections_of_a_token_are_bounded() {
    let yard = Yard::bounded(|bounds| bounds.connections_of_token_max = 2).await;
    let open = two_streams(&yard).await;
    let mut late = Wire::open(&yard).await;
    late.get(&yard, APPROVER, "/sessions").await;
    assert_eq!(late.status().await, 429);
    assert!(late.rest().await.contains("connection: close"));
    yard.get(OTHER, "/sessions").await.with(200);
    drop(open);
    yard.close().await;
}
