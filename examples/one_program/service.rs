//! The same program as a service: it gets one document by POST, and its answer is the result. It runs as long as this
//! process, on the loopback; elsewhere it would be a program of its own, in any language.

use serde_json::{Value, json};
use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    thread,
};

/// Counts the words of a file, or connects to a port of its own machine, as count.sh does.
fn count(home: &Path, arguments: &Value) -> io::Result<Value> {
    if let Some(path) = arguments["path"].as_str() {
        let text = fs::read_to_string(home.join(path))?;
        return Ok(json!({"words": text.split_whitespace().count()}));
    }
    let port = arguments["connect"].as_str().and_then(|port| port.parse().ok()).unwrap_or_default();
    TcpStream::connect(("127.0.0.1", port))?;
    Ok(json!({"connected": true}))
}

/// Starts it, with files in this directory, and gives the port that it listens on.
pub(crate) fn start(home: PathBuf) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let home = home.clone();
            thread::spawn(move || answer(&stream, &home));
        }
    });
    Ok(port)
}

/// Answers one request: {"tool", "call_id", "attempt", "arguments", "deadline_ms"}.
fn answer(mut stream: &TcpStream, home: &Path) -> io::Result<()> {
    let (mut reader, mut length) = (BufReader::new(stream), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(()); // somebody connected and said nothing
        }
        match line.trim_end().to_lowercase().split_once(": ") {
            Some(("content-length", value)) => length = value.parse().map_err(io::Error::other)?,
            None if line.trim_end().is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let request: Value = serde_json::from_slice(&body)?;
    let (status, body) = match count(home, &request["arguments"]) {
        Ok(counted) => ("200 OK", counted.to_string()),
        Err(error) => ("404 Not Found", error.to_string()),
    };
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
