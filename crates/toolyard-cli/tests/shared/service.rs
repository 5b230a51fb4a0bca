//! A service on this machine, as tools call it.

use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    thread,
};

/// A service that gives these answers, one after another, and hands over the requests that it got: head and body.
pub(crate) fn service(answers: Vec<String>) -> (String, thread::JoinHandle<Vec<(String, Value)>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/count?by=word", listener.local_addr().unwrap());
    let serve = move |answer: String| {
        let mut stream = listener.accept().unwrap().0;
        let (mut reader, mut head) = (BufReader::new(stream.try_clone().unwrap()), String::new());
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let lower = head.to_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        stream.write_all(answer.as_bytes()).unwrap();
        (lower, serde_json::from_slice(&body).unwrap())
    };
    (url, thread::spawn(move || answers.into_iter().map(serve).collect()))
}

/// An answer with these headers more.
pub(crate) fn answer(status: &str, more: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n{body}", body.len())
}
