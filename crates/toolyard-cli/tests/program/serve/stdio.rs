//! `toolyard serve --stdio`, as the program that has started it meets it (AG-14).

use crate::shared::served::SILENCE_MAX;
use crate::{
    child::{fed, program, toolyard},
    place::dir,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Lines, Read as _, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdin, ChildStdout},
    thread,
};

/// The program, and both ends that its parent holds.
struct Started {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Started {
    fn new(place: &Path, args: &[&str]) -> Self {
        let mut command = program(&["serve", "--stdio"]);
        command.args(args).current_dir(place);
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, to, from: BufReader::new(from).lines() }
    }

    /// Where it serves, by what it says at its start.
    fn address(&mut self) -> String {
        let mut said = BufReader::new(self.child.stderr.take().unwrap()).lines();
        let line = said.next().unwrap().unwrap();
        thread::spawn(move || said.for_each(drop)); // it is read to its end, so that the program does not wait
        line.split_once("http://").unwrap_or_else(|| panic!("{line}")).1.to_owned()
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn next(&mut self) -> Value {
        let line = self.from.next().expect("the program goes on").unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The next line of this operation; those before it are not looked at.
    fn until(&mut self, op: &str) -> Value {
        loop {
            let line = self.next();
            if line["op"] == op {
                return line;
            }
        }
    }

    /// Its exit code, with its input open.
    fn code(mut self) -> Option<i32> {
        self.from.by_ref().for_each(drop);
        self.child.wait().unwrap().code()
    }
}

const WRITE: &str = r#"{"op":"tool_calls","turn":"t","calls":[{"tool_call_id":"c","tool":"write_file","args":{"path":"a","content":"x"}}]}"#;

/// AG-14: a parent that says nothing but what it wants is answered, and the program ends well with it. Standard output has
/// the protocol and nothing else.
#[test]
fn a_parent_is_answered() {
    let mut command = program(&["serve", "--stdio", "--workspace", "."]);
    command.current_dir(dir("stdio-answered"));
    let call = |text: &str| json!({"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "echo", "input": {"text": text}}]});
    let lines = [json!({"op": "respond", "turn": "t", "message": call("hello")}), json!({"op": "bye"})];
    let done = fed(command, &lines.map(|line| format!("{line}\n")).concat());
    assert_eq!(done.code, Some(0), "{done:?}");
    let [ended, goodbye] = &done.lines()[..] else { panic!("{done:?}") };
    assert_eq!(ended["results"][0]["content"][0]["tool_use_id"], "u");
    assert_eq!((goodbye, &*done.stderr), (&json!({"op": "goodbye"}), ""));
}

/// AG-14, SC-8: a signal is told, what waits is answered, and the exit code says so, though standard input stays open.
#[test]
fn a_signal_ends_it() {
    let mut started = Started::new(&dir("stdio-signal"), &["--workspace", "."]);
    started.send(&json!({"op": "hello", "protocol": 1, "confirm": true}));
    started.to.write_all(format!("{WRITE}\n").as_bytes()).unwrap();
    started.until("confirm");
    kill_process(Pid::from_child(&started.child), Signal::TERM).unwrap();
    assert_eq!(started.until("shutdown")["grace_ms"], 5_000);
    assert_eq!(started.until("tool_response")["ok"], false);
    started.until("turn_ended");
    assert_eq!(started.code(), Some(130));
}

/// AG-14: a line that cannot be read ends it with an exit code of its own, and what is wrong is said to both.
#[test]
fn a_line_that_is_no_text_ends_it() {
    let mut started = Started::new(&dir("stdio-bytes"), &[]);
    started.to.write_all(b"\xff\n").unwrap();
    assert_eq!(started.until("error")["line"], 1);
    assert_eq!(started.code(), Some(2));
}

/// AG-14: with an address, what the parent does is seen there, and its questions can be answered there: the first counts.
#[test]
fn a_question_is_answered_over_http_too() {
    let place = dir("stdio-http");
    let secret = token_of_ada(&place);
    let mut started =
        Started::new(&place, &["--workspace", ".", "--http", "127.0.0.1:0", "--config", "toolyard.toml"]);
    let address = started.address();
    started.send(&json!({"op": "hello", "protocol": 1, "confirm": true}));
    started.to.write_all(format!("{WRITE}\n").as_bytes()).unwrap();
    let asked = started.until("confirm");
    let (id, digest) = (asked["request_id"].as_str().unwrap(), &asked["digest"]);
    let body = json!({"decision": "deny", "digest": digest, "reason": "seen on the page"});
    let answer = post(&address, &format!("/sessions/main/turns/1/confirmations/{id}"), &secret, &body);
    assert_eq!(answer["who"], "ada", "{answer}");
    // The answer of the call and the end of its question come in either order.
    let mut lines = [started.next(), started.next(), started.next()];
    lines.sort_by_key(|line| line["op"].to_string());
    let [ended, response, turn] = &lines;
    assert_eq!((&ended["who"], &ended["decision"]), (&json!("ada"), &json!("deny")), "{lines:?}");
    assert!(response["message"].as_str().unwrap().contains("seen on the page"), "{lines:?}");
    assert_eq!(turn["op"], "turn_ended");
    started.send(&json!({"op": "bye"}));
    assert_eq!(started.code(), Some(0));
}

/// Makes a token that may approve, and configures it.
fn token_of_ada(place: &Path) -> String {
    let made = toolyard(&["token", "new", "ada", "--scope", "approve", "--json"], "");
    let hash = made.json()["sha256"].as_str().unwrap().to_owned();
    let config = format!("[server.tokens.ada]\nsha256 = \"{hash}\"\nscopes = [\"approve\"]\n");
    fs::write(place.join("toolyard.toml"), config).unwrap();
    made.json()["token"].as_str().unwrap().to_owned()
}

fn post(address: &str, path: &str, secret: &str, body: &Value) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
    let body = body.to_string();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {secret}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}
