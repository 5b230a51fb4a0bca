//! Clients that cost little: the requests are the same bytes each time.

use crate::{linux::Failed, served::SECRET};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufStream},
    net::TcpStream,
};

/// The body of a turn of one call.
const TURN: &str = r#"{"calls":[{"call_id":"a","name":"nothing","arguments":null}]}"#;

/// An answer, without what every server says of its own accord.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A client with a session of its own.
pub(crate) struct Client {
    wire: BufStream<TcpStream>,
    turn: String,
}

impl Client {
    /// With a `key`, each turn repeats the first one, whose answer it gets.
    pub(crate) async fn open(address: SocketAddr, session: &str, key: Option<&str>) -> Result<Self, Failed> {
        let wire = BufStream::new(TcpStream::connect(address).await?);
        let key = key.map(|key| format!("\r\nidempotency-key: {key}")).unwrap_or_default();
        let turn = request(address, &format!("POST /sessions/{session}/turns?wait=30 HTTP/1.1{key}"), TURN);
        let mut client = Self { wire, turn };
        let open = request(address, "POST /sessions HTTP/1.1", &format!(r#"{{"id":"{session}"}}"#));
        client.wire.write_all(open.as_bytes()).await?;
        client.answer(201).await?;
        Ok(client)
    }

    /// Makes a turn of one call, and returns its answer.
    pub(crate) async fn turn(&mut self) -> Result<Answer, Failed> {
        self.wire.write_all(self.turn.as_bytes()).await?;
        self.answer(200).await
    }

    async fn answer(&mut self, wanted: u16) -> Result<Answer, Failed> {
        self.wire.flush().await?;
        let (mut length, mut headers) = (0, Vec::new());
        let status = head(&mut self.wire, |name, value| match name {
            "content-length" => length = value.parse().unwrap_or(0),
            "date" => {} // every server says it itself
            name => headers.push((name.to_owned(), value.to_owned())),
        })
        .await?;
        let mut body = vec![0; length];
        self.wire.read_exact(&mut body).await?;
        let body = String::from_utf8(body)?;
        if status == wanted {
            Ok(Answer { headers, body })
        } else {
            Err(format!("status {status}: {body}").into())
        }
    }
}

/// Somebody who reads the events of a session.
pub(crate) struct Follower(BufStream<TcpStream>);

impl Follower {
    pub(crate) async fn open(address: SocketAddr, session: &str) -> Result<Self, Failed> {
        let mut wire = BufStream::new(TcpStream::connect(address).await?);
        let ask = request(address, &format!("GET /sessions/{session}/events?after=0 HTTP/1.1"), "");
        wire.write_all(ask.as_bytes()).await?;
        wire.flush().await?;
        match head(&mut wire, |_, _| ()).await? {
            200 => Ok(Self(wire)),
            status => Err(format!("status {status}").into()),
        }
    }

    /// Reads until an event of this kind.
    pub(crate) async fn until(&mut self, kind: &str) -> Result<(), Failed> {
        let wanted = format!(r#""event":"{kind}""#);
        let mut line = String::new();
        while !line.contains(&wanted) {
            line.clear();
            if self.0.read_line(&mut line).await? == 0 {
                return Err(format!("no {kind} came").into());
            }
        }
        Ok(())
    }
}

fn request(address: SocketAddr, line: &str, body: &str) -> String {
    format!(
        "{line}\r\nhost: {address}\r\nauthorization: Bearer {SECRET}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Reads a head, and returns the status.
async fn head(wire: &mut BufStream<TcpStream>, mut header: impl FnMut(&str, &str)) -> Result<u16, Failed> {
    let mut line = String::new();
    wire.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).ok_or("an answer has no status")?.parse()?;
    loop {
        line.clear();
        wire.read_line(&mut line).await?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => header(name, value.trim()),
            None => return Ok(status),
        }
    }
}
