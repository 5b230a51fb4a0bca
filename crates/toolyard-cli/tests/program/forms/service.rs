//! Services on the loopback, which answer as a program would.

use serde_json::Value;
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread,
};

/// What a service does with each request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// Answers with this status, these headers besides the usual ones, and this body.
    Gives(&'static str, &'static str, &'static str),
    /// Gives back the arguments.
    GivesBack,
    /// Says what it was told of the call, as the variables of a program, a line each.
    Tells,
    /// Gives more than is kept.
    Floods,
    /// Never answers.
    Waits,
    /// Ends the connection instead of answering.
    Breaks,
    /// There is no such thing over HTTP, for this reason.
    Cannot(&'static str),
}

/// A request, as it was read.
struct Request {
    /// Its lines, in small letters but for the values of headers.
    headers: Vec<(String, String)>,
    document: Value,
}

/// Starts a service, and gives its address. It lives as long as the test.
pub(super) fn start(answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut unanswered = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read(&stream);
            let (status, more, body) = match answer {
                Answer::Gives(status, more, body) => (status, more, body.to_owned()),
                Answer::GivesBack => ("200 OK", "", request.document["arguments"].to_string()),
                Answer::Tells => ("200 OK", "", told(&request)),
                Answer::Floods => ("200 OK", "", flood()),
                Answer::Waits => {
                    unanswered.push(stream);
                    continue;
                }
                Answer::Breaks | Answer::Cannot(_) => continue,
            };
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n", body.len());
            // A caller that has its answer may be gone.
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        }
    });
    url
}

/// What the script of this case prints.
fn flood() -> String {
    format!("start\n{}end\n", "0123456789abcde\n".repeat(6000))
}

fn read(stream: &TcpStream) -> Request {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let line = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    line(&mut reader);
    let mut headers: Vec<(String, String)> = Vec::new();
    while let Some((name, value)) = line(&mut reader).split_once(": ") {
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").unwrap();
    let mut body = vec![0; length.1.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Request { headers, document: serde_json::from_slice(&body).unwrap() }
}

/// What a request says of its call, under the names that a program knows it by. Other headers have their own.
fn told(request: &Request) -> String {
    let Request { headers, document } = request;
    let fields =
        [("tool", "TOOL"), ("call_id", "CALL_ID"), ("attempt", "ATTEMPT"), ("deadline_ms", "DEADLINE_MS")];
    let said = fields.iter().map(|(field, name)| {
        let value = &document[field];
        format!("TOOLYARD_{name}={}\n", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    });
    let headers = headers.iter().map(|(name, value)| match &**name {
        "idempotency-key" => format!("TOOLYARD_IDEMPOTENCY_KEY={value}\n"),
        "own" => format!("OWN={value}\n"),
        _ => format!("{name}={value}\n"),
    });
    said.chain(headers).collect()
}
