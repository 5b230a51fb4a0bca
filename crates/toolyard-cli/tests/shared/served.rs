//! `toolyard serve` as a child process, and the tokens of those who use it.

use super::child::toolyard;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Lines, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

/// A server that says nothing for so long has failed its test.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(120);

/// A server that runs, and what it has printed.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) told: Value,
    /// Its standard error.
    pub(crate) said: Lines<BufReader<ChildStderr>>,
}

impl Served {
    pub(crate) fn start(place: &Path, args: &[&str]) -> Self {
        Self::with(place, args, &[])
    }

    pub(crate) fn with(place: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolyard"))
            .args(["serve", "--http", "127.0.0.1:0", "--json", "--workspace"])
            .arg(place)
            .args(args)
            .envs(variables.iter().copied())
            .current_dir(place)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, told: serde_json::from_str(&line).unwrap(), said }
    }

    /// Sends a request, and returns what its answer is read from.
    pub(crate) fn send(&self, line: &str, token: Option<&str>, body: &str) -> TcpStream {
        let address = self.told["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(SILENCE_MAX)).unwrap();
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: {address}\r\n{token}content-type: application/json\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    pub(crate) fn get(&self, path: &str, token: &str) -> (u16, Value) {
        Self::answer(self.send(&format!("GET {path}"), Some(token), ""))
    }

    pub(crate) fn post(&self, path: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        Self::answer(self.send(&format!("POST {path}"), token, &body.to_string()))
    }

    pub(crate) fn answer(mut stream: TcpStream) -> (u16, Value) {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, if body.is_empty() { Value::Null } else { serde_json::from_str(body).unwrap() })
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Interrupts it, and returns its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.signal(Signal::INT);
        self.child.wait().unwrap().code()
    }
}

/// A test that fails leaves no server.
impl Drop for Served {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The tokens of a program that calls and of a person who approves, and what configures them.
pub(crate) struct Two {
    pub(crate) agent: String,
    pub(crate) ada: String,
    pub(crate) config: String,
}

impl Two {
    pub(crate) fn new() -> Self {
        let [agent, ada] = [("agent", "call"), ("ada", "approve")].map(|(name, scope)| {
            let made = toolyard(&["token", "new", name, "--scope", scope, "--json"], "").json();
            let hash = made["sha256"].as_str().unwrap();
            let config = format!("[server.tokens.{name}]\nsha256 = \"{hash}\"\nscopes = [\"{scope}\"]\n");
            (made["token"].as_str().unwrap().to_owned(), config)
        });
        Self { agent: agent.0, ada: ada.0, config: agent.1 + &ada.1 }
    }

    /// A server with these tokens in which a session is open.
    pub(crate) fn serve(&self, place: &Path, more: &str) -> Served {
        fs::write(place.join("toolyard.toml"), format!("{more}\n{}", self.config)).unwrap();
        let served = Served::start(place, &[]);
        assert_eq!(served.post("/sessions", Some(&self.agent), &json!({"id": "a"})).0, 201);
        served
    }

    /// Starts a turn of one call, and returns its number.
    pub(crate) fn turn(&self, served: &Served, tool: &str, arguments: &Value) -> u64 {
        let call = json!({"calls": [{"call_id": "1", "name": tool, "arguments": arguments}]});
        let (status, turn) = served.post("/sessions/a/turns", Some(&self.agent), &call);
        assert_eq!(status, 202, "{turn}");
        turn["turn"].as_u64().unwrap()
    }

    /// Waits for the first question, as the stream of events tells of it, and answers it.
    pub(crate) fn answer(&self, served: &Served, mut answer: Value) -> (u16, Value) {
        let question = event(served, &self.ada, "tool.confirmation_requested");
        answer["digest"] = question["digest"].clone();
        let path = format!("/sessions/a/turns/1/confirmations/{}", question["request"].as_str().unwrap());
        served.post(&path, Some(&self.ada), &answer)
    }

    /// Waits for the outcome of the only call of a turn.
    pub(crate) fn outcome(&self, served: &Served, turn: u64) -> Value {
        let path = format!("/sessions/a/turns/{turn}?wait=60&to=neutral");
        served.get(&path, &self.agent).1["results"]["results"][0].take()
    }
}

/// The first event of this kind of the session, as soon as it happens.
pub(crate) fn event(served: &Served, token: &str, kind: &str) -> Value {
    let path = format!("GET /sessions/a/events?after=0&kinds={kind}");
    let stream = BufReader::new(served.send(&path, Some(token), ""));
    let mut lines = stream.lines().map(Result::unwrap);
    let data = lines.find_map(|line| line.strip_prefix("data:").map(str::to_owned)).unwrap();
    serde_json::from_str(&data).unwrap()
}
