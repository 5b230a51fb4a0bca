//! `toolyard serve` and `toolyard token new`, as a script uses them.
#![cfg(unix)]

use crate::{child::toolyard, place::dir};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

/// A server that runs, and what it has printed.
struct Served {
    child: Child,
    told: Value,
}

impl Served {
    fn start(place: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolyard"))
            .args(["serve", "--http", "127.0.0.1:0", "--json", "--workspace"])
            .arg(place)
            .args(args)
            .current_dir(place)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, told: serde_json::from_str(&line).unwrap() }
    }

    fn post(&self, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        let address = self.told["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let (body, mut stream) = (body.to_string(), TcpStream::connect(&address).unwrap());
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\n{token}content-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap())
    }

    /// Interrupts it, and returns its exit code.
    fn end(mut self) -> Option<i32> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().code()
    }
}

const READ: &str = r#"{"calls":[{"call_id":"1","name":"read_file","arguments":{"path":"notes.md"}}]}"#;

/// HT-6: without a configuration there is a link and a token, by which calls run; an interrupt ends it.
#[test]
fn a_server_prints_its_token_and_runs_calls() {
    let place = dir("serve");
    fs::write(place.join("notes.md"), "milk").unwrap();
    let events = place.join("log.jsonl");
    let served = Served::start(&place, &["--events", events.to_str().unwrap()]);
    assert!(served.told["link"].as_str().unwrap().contains("/#code="));
    let token = served.told["token"].as_str().unwrap().to_owned();
    assert_eq!(served.post("/sessions", None, &json!({})).0, 401);
    assert_eq!(served.post("/sessions", Some(&token), &json!({"id": "a"})).0, 201);
    let batch: Value = serde_json::from_str(READ).unwrap();
    let (status, turn) = served.post("/sessions/a/turns?wait=60", Some(&token), &batch);
    assert_eq!(
        (status, &turn["results"]["results"][0]["content"][0]["text"]),
        (200, &json!("milk")),
        "{turn}"
    );
    assert_eq!(served.end(), Some(130));
    let audit = toolyard(&["audit", events.to_str().unwrap()], "");
    assert_eq!(audit.code, Some(0), "{}", audit.stdout);
}

/// HT-6, HT-7: a configured token is admitted, within its bounds; then there is no page.
#[test]
fn a_configured_token_is_admitted() {
    let place = dir("serve-configured");
    let made = toolyard(&["token", "new", "ci", "--scope", "call", "--json"], "").json();
    let token = format!(
        "[server.tokens.ci]\nsha256 = \"{}\"\nscopes = [\"call\"]\nroles = [\"builder\"]\n",
        made["sha256"].as_str().unwrap()
    );
    fs::write(place.join("toolyard.toml"), token).unwrap();
    let served = Served::start(&place, &[]);
    assert_eq!((&served.told["link"], &served.told["token"]), (&Value::Null, &Value::Null));
    let token = made["token"].as_str().unwrap();
    assert_eq!(served.post("/sessions", Some(token), &json!({"role": "builder"})).0, 201);
    assert_eq!(served.post("/sessions", Some(token), &json!({"role": "admin"})).0, 422);
    assert_eq!(served.end(), Some(130));
}

/// HT-6: a configured token that would approve its own calls, and one without a hash, are errors with their lines.
#[test]
fn a_bad_token_is_an_error() {
    let place = dir("serve-bad");
    let file = place.join("toolyard.toml");
    let check = |text: &str| {
        fs::write(&file, text).unwrap();
        let done = toolyard(&["check", "--config", file.to_str().unwrap()], "");
        assert_eq!(done.code, Some(2), "{text}");
        done.stderr
    };
    let both =
        format!("[server.tokens.a]\nsha256 = \"{}\"\nscopes = [\"call\", \"approve\"]\n", "0".repeat(64));
    assert!(check(&both).contains("self_approve"), "{both}");
    assert!(check("[server.tokens.a]\nscopes = [\"call\"]\n").contains("toolyard token new a"));
    assert!(check("[server.tokens.a]\nsha256 = \"x\"\nscopes = [\"all\"]\n").contains("'all' is no scope"));
}
