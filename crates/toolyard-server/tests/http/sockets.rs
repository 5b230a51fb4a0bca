//! The stream of events over a WebSocket.

use crate::yard::{APPROVER, CALLER, OPERATOR, Yard, call};
use reqwest::{Response, Upgraded};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const CLOSE: u8 = 0x88;

/// A socket, frame by frame.
pub(crate) struct Socket(Upgraded);

async fn ticket(yard: &Yard, secret: &str) -> String {
    yard.post(secret, "/tickets", json!({})).await.with(201)["ticket"].as_str().unwrap().to_owned()
}

async fn asked(yard: &Yard, ticket: &str, query: &str) -> Response {
    let request = yard.client.get(format!("http://{}/stream?ticket={ticket}{query}", yard.address));
    let request = request.header("connection", "upgrade").header("upgrade", "websocket");
    let request = request.header("sec-websocket-version", "13");
    request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==").send().await.unwrap()
}

impl Socket {
    pub(crate) async fn open(yard: &Yard, secret: &str, query: &str) -> Self {
        let ticket = ticket(yard, secret).await;
        Self::of(asked(yard, &ticket, query).await).await
    }

    async fn of(response: Response) -> Self {
        assert_eq!(response.status(), 101);
        Self(response.upgrade().await.unwrap())
    }

    /// The next frame of the server, `None` once it has closed.
    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).await.ok()?;
        assert!(head[1] < 128, "a server's frames are not masked");
        let length = match head[1] {
            126 => u64::from(self.0.read_u16().await.ok()?),
            127 => self.0.read_u64().await.ok()?,
            length => u64::from(length),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.0.read_exact(&mut payload).await.ok()?;
        Some((head[0], payload))
    }

    /// The next message, `None` once the server has closed.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            match self.frame().await? {
                (PING, _) => {}
                (TEXT, text) => return Some(serde_json::from_slice(&text).unwrap()),
                (CLOSE, _) => return None,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Begins a frame of so many bytes, and sends these of them. Its mask is zero, so that they are as they are.
    async fn send(&mut self, kind: u8, length: u64, sent: &[u8]) {
        let mut frame = vec![kind, 0x80 | 127];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(sent);
        // The server may have closed it.
        let _ = self.0.write_all(&frame).await;
    }
}

async fn one_call(yard: &Yard) {
    yard.post(CALLER, "/sessions/a/calls", call("1", "echo", json!({}))).await.with(200);
}

/// HT-9, HT-10: a ticket opens one WebSocket, and what is no request for one takes none; streams of a token are bounded.
#[tokio::test]
async fn a_ticket_opens_one_socket() {
    let yard = Yard::bounded(|bounds| bounds.streams_max = 1).await;
    yard.session("a").await;
    let used = ticket(&yard, APPROVER).await;
    let plain = yard.get(APPROVER, &format!("/stream?ticket={used}")).await;
    assert_eq!(plain.problem(426), "no_websocket");
    let mut socket = Socket::of(asked(&yard, &used, "&after=0").await).await;
    assert_eq!(socket.next().await.unwrap()["event"]["event"], "session.opened");
    assert_eq!(asked(&yard, &used, "&after=0").await.status(), 401);
    let second = ticket(&yard, APPROVER).await;
    assert_eq!(asked(&yard, &second, "").await.status(), 429, "it has one stream already");
    assert_eq!(yard.get(APPROVER, "/events").await.problem(429), "too_many");
    Socket::open(&yard, OPERATOR, "").await;
    yard.close().await;
}

/// SM-9: a socket that is cut at random places, within messages too, while more happens, loses and repeats nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_is_resumed_without_gap_or_repeat() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let calls = 300;
    let happening = async {
        for _ in 0..calls {
            one_call(&yard).await;
        }
    };
    let reading = async {
        let (mut after, mut read, mut cuts, mut dice) = ("0".to_owned(), Vec::new(), 0, 7_u32);
        while read.len() < calls * 6 {
            let mut socket = Socket::open(&yard, APPROVER, &format!("&after={after}")).await;
            dice = dice.wrapping_mul(1_103_515_245).wrapping_add(12345);
            for _ in 0..(dice >> 16) % 6 {
                let message = socket.next().await.unwrap();
                read.push(message["event"]["position"].as_u64().unwrap());
                message["id"].as_str().unwrap().clone_into(&mut after);
            }
            // What has come of the next message is lost with the connection.
            let mut part = vec![0; (dice >> 20) as usize % 200];
            let _ = futures::poll!(std::pin::pin!(socket.0.read(&mut part)));
            cuts += 1;
        }
        (read, cuts)
    };
    let ((read, cuts), ()) = futures::join!(reading, happening);
    assert!(cuts > 500, "{cuts}");
    assert_eq!(read, (read[0]..read[0] + read.len() as u64).collect::<Vec<_>>());
    yard.close().await;
}

/// SM-9: over a socket too, a reader of another life is told from where it goes on, and a last message says why it ends.
#[tokio::test]
async fn a_socket_tells_what_was_missed_and_why_it_ends() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let mut socket = Socket::open(&yard, CALLER, "&session=a&after=0123456789abcdef.5").await;
    let reset = socket.next().await.unwrap();
    assert!(reset["reset"]["from"].as_str().unwrap().ends_with(".0"), "{reset}");
    assert_eq!(socket.next().await.unwrap()["event"]["event"], "session.opened");
    yard.stop.cancel();
    assert_eq!(socket.next().await.unwrap(), json!({"end": {"why": "shutting_down"}}));
    assert_eq!(socket.next().await, None);
}

/// HT-10: a silent socket is asked every 15 s whether it is there.
#[tokio::test]
async fn a_silent_socket_is_asked_whether_it_is_there() {
    let yard = Yard::open().await;
    let mut socket = Socket::open(&yard, APPROVER, "").await;
    assert_eq!(socket.frame().await, Some((PING, Vec::new())));
    tokio::time::pause(); // whenever nothing is to be done, it is time for the next ping
    for _ in 0..3 {
        assert_eq!(socket.frame().await, Some((PING, Vec::new())));
    }
}

/// HT-10: what a reader says is not looked at up to 4 KiB; more than that ends its socket as soon as it is announced, in one
/// frame or in several, and its place is another's.
#[tokio::test]
async fn what_a_reader_says_is_bounded() {
    const MOST: u64 = 4096;
    let yard = Yard::bounded(|bounds| bounds.streams_max = 1).await;
    yard.session("a").await;
    let query = "&kinds=tool.completed";
    let mut socket = Socket::open(&yard, APPROVER, query).await;
    let said = vec![b'x'; 4096];
    for length in [0, 1, MOST] {
        socket.send(TEXT, length, &said[..usize::try_from(length).unwrap()]).await;
        one_call(&yard).await;
        assert_eq!(socket.next().await.unwrap()["event"]["event"], "tool.completed");
    }
    drop(socket);
    for what in ["a frame", "a large frame", "frames", "bytes that are no text"] {
        // As soon as the place of the one before is free.
        let mut socket = loop {
            let answer = asked(&yard, &ticket(&yard, APPROVER).await, query).await;
            match answer.status().as_u16() {
                101 => break Socket::of(answer).await,
                other => assert_eq!(other, 429, "{what}"),
            }
        };
        match what {
            "a frame" => socket.send(TEXT, MOST + 1, &said).await,
            "a large frame" => socket.send(TEXT, 15 << 20, b"").await,
            "frames" => {
                socket.send(0x01, MOST, &said).await;
                socket.send(0x80, 1, b"x").await;
            }
            _ => socket.send(TEXT, 2, &[0xff, 0xff]).await,
        }
        // It ends, and is told at most of what has happened before that was read.
        let mut told = 0;
        loop {
            one_call(&yard).await;
            if socket.next().await.is_none() {
                break;
            }
            told += 1;
            assert!(told < 100, "{what} is waited for");
        }
    }
    while yard.get(OPERATOR, "/status").await.with(200)["streams"] != 0 {}
    yard.close().await;
}
