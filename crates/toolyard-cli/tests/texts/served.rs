//! The requests of the page about the server, each line of them as it is written, against a server that runs.

use crate::{
    checkout::Checkout,
    missing::skip,
    page::{Block, Page},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

/// The page with requests to a server.
pub(crate) const PAGE: &str = "docs/guide/server.md";

/// Where the page has its server, and the question that it answers.
const ADDRESS: &str = "http://127.0.0.1:8080";
const QUESTION: &str = "/turns/3/confirmations/5d1f0c9a7be24a60.1.9c41ee07d2b8f315";

/// What a model answers, with the call whose result the page shows.
const RESPONSE: &str = r#"{"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function",
    "function": {"name": "read_file", "arguments": "{\"path\": \"notes.md\"}"}}]}}]}"#;

/// What a model writes.
const STREAM: &str = r#"event: message_start
data: {"type": "message_start", "message": {"role": "assistant", "content": []}}

event: content_block_start
data: {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "call_2", "name": "read_file", "input": {}}}

event: content_block_delta
data: {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"path\": \"notes.md\"}"}}

event: content_block_stop
data: {"type": "content_block_stop", "index": 0}

event: message_stop
data: {"type": "message_stop"}

"#;

/// A server of a program that calls and of a person who approves.
struct Server {
    child: Child,
    checkout: Checkout,
    address: String,
    token: String,
    approver: String,
}

impl Server {
    fn start() -> Self {
        let checkout = Checkout::new("texts-served");
        let (token, caller) = self::token(&checkout, "agent", "call");
        let (approver, ada) = self::token(&checkout, "ada", "approve");
        fs::write(checkout.dir.join("toolyard.toml"), caller + &ada).unwrap();
        fs::write(checkout.dir.join("notes.md"), "# Notes\n").unwrap();
        fs::write(checkout.dir.join("response.json"), RESPONSE).unwrap();
        // So that a request that is refused fails, and only answers are printed.
        fs::write(checkout.dir.join(".curlrc"), "silent\nshow-error\nfail-with-body\n").unwrap();
        let mut serve = checkout.command("toolyard");
        serve.args(["serve", "--http", "127.0.0.1:0", "--json"]).stdin(Stdio::null());
        let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let address = told["address"].as_str().unwrap().to_owned();
        Self { child, checkout, address, token, approver }
    }

    /// A line of the page as a command, at the address of this server.
    fn command(&self, line: &str) -> Command {
        assert!(line.contains(ADDRESS), "where does it go? {line}");
        let mut command = self.checkout.command("sh");
        command.args(["-euc", &line.replace(ADDRESS, &self.address)]);
        command.env("TOKEN", &self.token).env("APPROVER", &self.approver);
        command.env("CURL_HOME", &self.checkout.dir).env("NO_PROXY", "127.0.0.1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Runs a line to its end on this input, and returns what it prints.
    fn run(&self, line: &str, input: &str) -> String {
        let mut child = self.command(line).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        assert!(done.status.success(), "{line}\n{said}");
        said
    }

    fn json(&self, line: &str) -> Value {
        let said = self.run(line, "");
        serde_json::from_str(&said).unwrap_or_else(|error| panic!("{line}\n{error}: {said}"))
    }

    /// The first event of a stream that does not end by itself.
    fn first_event(&self, line: &str) -> Value {
        // Not a child of the shell, which would outlive it.
        let mut child = self.command(&format!("exec {line}")).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let data = lines.find_map(|line| line.strip_prefix("data:").map(str::to_owned));
        child.kill().unwrap();
        child.wait().unwrap();
        serde_json::from_str(&data.expect("an event")).unwrap()
    }
}

/// A test that fails leaves no server.
impl Drop for Server {
    fn drop(&mut self) {
        // One that has ended is not there to be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new token, and what configures it.
fn token(checkout: &Checkout, name: &str, scope: &str) -> (String, String) {
    let done = checkout.command("toolyard").args(["token", "new", name, "--scope", scope, "--json"]).output();
    let made: Value = serde_json::from_slice(&done.unwrap().stdout).unwrap();
    let config = format!("[server.tokens.{name}]\nsha256 = {}\nscopes = [\"{scope}\"]\n", made["sha256"]);
    (made["token"].as_str().unwrap().to_owned(), config)
}

/// The lines of the page that go to a server, with what is shown beneath each block.
fn lines() -> Vec<(String, Option<String>)> {
    let blocks = Page::open(PAGE).blocks();
    let shown =
        |at: usize| blocks.get(at + 1).filter(|next| next.tag == "text").map(|next| next.code.clone());
    let served = blocks.iter().enumerate().filter(|(_, Block { tag, .. })| tag == "sh served");
    let each = |(at, block): (usize, &Block)| {
        block.code.lines().map(|line| (line.to_owned(), shown(at))).collect::<Vec<_>>()
    };
    served.flat_map(each).collect()
}

/// The same without times, which differ.
fn timeless(mut turn: Value) -> Value {
    for time in ["started_ms", "ended_ms"] {
        assert!(turn[time].is_u64(), "{turn}");
        turn[time] = Value::Null;
    }
    turn
}

#[test]
fn requests_of_the_page_about_the_server_do_what_it_says() {
    if !Command::new("curl").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
        return skip("the requests of the guide need curl");
    }
    let server = Server::start();
    let lines = lines();
    let [open, turn, stream, list, answer, events] = lines.as_slice() else {
        panic!("what do these do? {lines:#?}");
    };
    assert_eq!(server.json(&open.0)["id"], "demo");
    let shown = serde_json::from_str(turn.1.as_ref().expect("the answer is shown")).unwrap();
    assert_eq!(timeless(server.json(&turn.0)), timeless(shown));
    let told = server.run(&stream.0, STREAM);
    let kinds: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(kinds, ["turn", "call", "results"], "{told}");
    assert!(told.contains("# Notes"), "{told}");
    // The third turn asks.
    let call = json!({"call_id": "c", "name": "write_file", "arguments": {"path": "new.md", "content": "x"}});
    let asks = json!({ "calls": [call] }).to_string();
    let third = turn.0.replace("@response.json", &format!("'{asks}'")).replace("?wait=60", "");
    assert_eq!(server.json(&third)["turn"], 3);
    let question = loop {
        match server.json(&list.0)["confirmations"].as_array().unwrap().as_slice() {
            [] => {}
            [question] => break question.clone(),
            several => panic!("{several:?}"),
        }
    };
    let text = |name: &str| question[name].as_str().unwrap();
    let named = format!("/turns/3/confirmations/{}", text("request_id"));
    let line = answer.0.replace(QUESTION, &named).replace('…', text("digest"));
    assert!(line.contains(&named) && line.contains(text("digest")), "{line}");
    assert_eq!(server.json(&line)["decision"], "deny");
    assert!(!server.checkout.dir.join("new.md").exists());
    assert_eq!(server.first_event(&events.0)["event"], "session.opened");
}
