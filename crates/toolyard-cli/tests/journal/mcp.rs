//! `toolyard mcp --journal`: what a client sends again with its key after a restart runs once (JR-8, JR-10).

use crate::{
    child::program,
    yard::{CONFIG, Yard},
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Lines, Write},
    net::TcpStream,
    process::{Child, ChildStdin, ChildStdout},
};

/// The program, as an MCP client on its standard input and output sees it.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn of(yard: &Yard, args: &[&str]) -> Self {
        let mut command = program(&["mcp", "--approve", "auto"]);
        command.arg("--config").arg(yard.file("toolyard.toml")).arg("--workspace").arg(yard.file("work"));
        command.arg("--journal").arg(yard.file("agent.journal")).args(args);
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Self { stdin: child.stdin.take(), child, lines };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert!(client.answer(0)["result"].is_object());
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn call(&mut self, id: u64, text: &str, key: Option<&str>) {
        let mut params = json!({"name": "note", "arguments": {"text": text}});
        if let Some(key) = key {
            params["_meta"] = json!({"toolyard/idempotency_key": key});
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.lines.next().expect("the program has ended").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message;
            }
        }
    }

    /// The code of the error of a call, if it has one.
    fn code(&mut self, id: u64) -> Option<String> {
        let result = &self.answer(id)["result"];
        assert!(result.is_object(), "{result}");
        result["_meta"]["toolyard/error"]["code"].as_str().map(str::to_owned)
    }

    /// Closes its input, and returns what it has said to people.
    fn ended(mut self) -> String {
        drop(self.stdin.take());
        let done = self.child.wait_with_output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    }

    fn killed(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn texts(yard: &Yard) -> Vec<String> {
    yard.effects().iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

fn open_turns(yard: &Yard) -> usize {
    let mut ls = program(&["journal", "ls"]);
    ls.arg(yard.file("agent.journal")).args(["--open", "--json"]);
    crate::child::fed(ls, "").lines().len()
}

/// JR-10: a call that has ended is answered from the journal when it is sent again with its key after a kill; without a key it
/// is another call. JR-8: what was running when the program was killed is `interrupted` under its key, what waited behind it
/// is cancelled, because its client has gone, and runs when it is sent again; nothing stays open.
#[test]
fn a_key_is_known_after_a_kill() {
    let yard = Yard::new();
    let mut client = Client::of(&yard, &[]);
    client.call(1, "done", Some("k-done"));
    assert_eq!(client.code(1), None);
    fs::write(yard.file("waits"), "").unwrap();
    client.call(2, "running", Some("k-running"));
    while yard.effects().len() < 2 {
        std::thread::yield_now();
    }
    client.call(3, "queued", Some("k-queued"));
    while open_turns(&yard) < 2 {
        std::thread::yield_now();
    }
    client.killed();
    fs::remove_file(yard.file("waits")).unwrap();

    let mut client = Client::of(&yard, &[]);
    assert_eq!(open_turns(&yard), 0);
    client.call(1, "done", Some("k-done"));
    assert_eq!(client.code(1), None);
    client.call(2, "running", Some("k-running"));
    assert_eq!(client.code(2).as_deref(), Some("interrupted"));
    client.call(3, "queued", Some("k-queued"));
    assert_eq!(client.code(3), None);
    client.call(4, "done", None);
    assert_eq!(client.code(4), None);
    assert_eq!(texts(&yard), ["done", "running", "queued", "done"]);
    let said = client.ended();
    assert!(said.contains("which an earlier client had left open, has ended: 1 call"), "{said}");

    // A client that leaves cancels what it has left, and not what its successor sends.
    let mut client = Client::of(&yard, &[]);
    client.call(1, "queued", Some("k-queued"));
    assert_eq!(client.code(1), None);
    client.call(2, "last", Some("k-last"));
    assert_eq!(client.code(2), None);
    assert_eq!(client.ended(), "");
    assert_eq!(texts(&yard), ["done", "running", "queued", "done", "last"]);
}

/// JR-10: under another name the key is another one, and what others have left open in the file stays as it is.
#[test]
fn a_session_has_its_own_keys() {
    let yard = Yard::new();
    yard.killed(&crate::yard::response(&["a", "b"]));
    for name in ["one", "two", "one"] {
        let mut client = Client::of(&yard, &["--session", name]);
        client.call(1, name, Some("k"));
        assert_eq!(client.code(1), None);
        assert_eq!(client.ended(), "");
    }
    assert_eq!(texts(&yard), ["a", "one", "two"]);
    assert_eq!(open_turns(&yard), 1, "the turn of 'run' is not a client's");
}

/// A tool whose server is not there cannot say what became of its calls: they stay open, and that is said.
#[test]
fn what_a_missing_server_would_know_stays_open() {
    let yard = Yard::new();
    let mut client = Client::of(&yard, &[]);
    fs::write(yard.file("waits"), "").unwrap();
    client.call(1, "running", None);
    while yard.effects().is_empty() {
        std::thread::yield_now();
    }
    client.killed();
    fs::remove_file(yard.file("waits")).unwrap();
    let note = CONFIG.find("[program.note]").unwrap();
    let other = format!(
        "{}[builtin]\nenable = [\"echo\"]\n[mcp.notes]\ncommand = \"false\"\nrequired = false\nprefix = \"\"\n",
        &CONFIG[..note]
    );
    fs::write(yard.file("toolyard.toml"), other).unwrap();
    let said = Client::of(&yard, &[]).ended();
    assert!(said.contains("1 turn of earlier clients stay open"), "{said}");
    assert_eq!(open_turns(&yard), 1);
    fs::write(yard.file("toolyard.toml"), CONFIG).unwrap();
    assert!(Client::of(&yard, &[]).ended().contains("has ended: 1 call"));
    assert_eq!(open_turns(&yard), 0);
}

/// The program as a client over HTTP sees it.
struct OverHttp {
    child: Child,
    address: String,
    session: Option<String>,
}

impl OverHttp {
    fn of(yard: &Yard) -> Self {
        let mut command = program(&["mcp", "--approve", "auto", "--http", "127.0.0.1:0"]);
        command.arg("--config").arg(yard.file("toolyard.toml")).arg("--workspace").arg(yard.file("work"));
        command.arg("--journal").arg(yard.file("agent.journal")).env_remove("TOOLYARD_MCP_TOKEN");
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = said
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once("serving http://")?.1.strip_suffix("/mcp")?.to_owned()))
            .expect("it says where it serves");
        let mut client = Self { child, address, session: None };
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
        let opened =
            client.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        let mut head = BufReader::new(opened).lines().map_while(Result::ok);
        let session = head.find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.to_owned())
        });
        client.session = Some(session.expect("it opens a session"));
        let told = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert!(BufReader::new(told).lines().next().unwrap().unwrap().contains("202"));
        client
    }

    fn post(&self, message: &Value) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let body = message.to_string();
        let session = self.session.iter().map(|session| format!("mcp-session-id: {session}\r\n"));
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: {}\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{}\r\n{body}",
            self.address,
            body.len(),
            session.collect::<String>()
        )
        .unwrap();
        stream
    }
}

/// JR-10: clients over HTTP have sessions whose names no other one has, in no life of the engine; what they leave open ends
/// when the program is started again.
#[test]
fn clients_over_http_leave_nothing_open() {
    let yard = Yard::new();
    let mut sessions = Vec::new();
    for life in 1..=2 {
        fs::write(yard.file("waits"), "").unwrap();
        let mut client = OverHttp::of(&yard);
        assert_eq!(open_turns(&yard), 0);
        let params = json!({"name": "note", "arguments": {"text": life.to_string()}});
        let _waits =
            client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
        while yard.effects().len() < life {
            std::thread::yield_now();
        }
        client.child.kill().unwrap();
        client.child.wait().unwrap();
        let mut ls = program(&["journal", "ls"]);
        ls.arg(yard.file("agent.journal")).args(["--open", "--json"]);
        let open = crate::child::fed(ls, "").lines();
        assert_eq!(open.len(), 1, "{open:?}");
        sessions.push(open[0]["session"].as_str().unwrap().to_owned());
    }
    assert!(sessions.iter().all(|name| name.starts_with("mcp:test:")), "{sessions:?}");
    assert_ne!(sessions[0], sessions[1]);
}
