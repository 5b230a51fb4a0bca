//! A server that misbehaves as it is told. It is this test program again, running only the one test that is the server;
//! the harness's own output lines are not messages.

use crate::client::much;
use serde_json::{Value, json};
use std::{
    env,
    fs::{OpenOptions, read_to_string},
    io::{BufRead, Read, Write, stdin, stdout},
    net::TcpStream,
    path::Path,
    process::{Command, exit},
};
use toolyard_mcp::ServerConfig;

/// A server of this name that behaves like this.
pub(crate) fn odd(name: &str, how: &str) -> ServerConfig {
    odd_at(&env::current_exe().unwrap(), name, how)
}

/// The same, started from this path of the test program.
pub(crate) fn odd_at(program: &Path, name: &str, how: &str) -> ServerConfig {
    let args = ["--exact", "client::server::be_a_server", "--ignored", "--nocapture", "--test-threads=1"];
    ServerConfig::new(name, program).args(args).env("ODD", how).trusted(true)
}

#[test]
#[ignore = "the server itself, started by the other tests"]
fn be_a_server() {
    let Ok(how) = env::var("ODD") else { return };
    // If this file exists, its content counts, so that the next start can behave differently.
    let how = env::var("ODD_FILE").ok().and_then(|file| read_to_string(file).ok()).unwrap_or(how);
    // The harness has started a line.
    say_bytes(b"\n");
    if let Ok(place) = env::var("ODD_MEETS") {
        // Nothing is sent there: the connection is closed once all servers have connected.
        let _ = TcpStream::connect(place).unwrap().read(&mut [0]);
    }
    let mut server = Odd {
        how,
        asked: Vec::new(),
        cancelled: Vec::new(),
        is_changed: false,
        late: None,
        heard: Vec::new(),
        held: Vec::new(),
    };
    for line in stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line.unwrap()) else { continue };
        server.hear(&message);
    }
    exit(0);
}

struct Odd {
    how: String,
    /// Open questions, each with its call.
    asked: Vec<(Value, Value)>,
    cancelled: Vec<Value>,
    is_changed: bool,
    /// The id of the newer greeting, if it is to be answered late.
    late: Option<Value>,
    heard: Vec<String>,
    /// Calls that are answered when enough have arrived, the last one first.
    held: Vec<(Value, Value)>,
}

fn say(message: &Value) {
    say_bytes(format!("{message}\n").as_bytes());
}

fn say_bytes(bytes: &[u8]) {
    let mut out = stdout().lock();
    // An error means that the client is gone.
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// A line that is not text.
const BYTES: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\xfe\"}\n";

/// A line of 100 MiB.
fn say_long() {
    say_bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    (0..100).for_each(|_| say_bytes(&vec![b'x'; 1 << 20]));
    say_bytes(b"\"}\n");
}

fn answer(id: &Value, result: Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn refuse(id: &Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}}));
}

/// The answer of a server that speaks only the newer protocol.
fn versions() -> Value {
    let versions = ["2026-07-28"];
    let capabilities = json!({"tools": {}});
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": capabilities, "ttlMs": 0,
        "cacheScope": "private"})
}

fn text(id: &Value, text: impl ToString) {
    answer(id, json!({"content": [{"type": "text", "text": text.to_string()}]}));
}

impl Odd {
    fn hear(&mut self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        self.heard.extend(message["method"].as_str().map(str::to_owned));
        match (message["method"].as_str().unwrap_or_default(), self.how.as_str()) {
            (_, "mute") => {}
            ("", _) if id.is_string() => self.answered(message),
            (_, "exits") => {
                eprintln!("no licence found");
                exit(3);
            }
            // Until the key file exists.
            (_, "shut") if !env::var("ODD_KEY").is_ok_and(|key| Path::new(&key).exists()) => exit(4),
            ("server/discover", "old") => exit(1),
            ("server/discover", "shy") => {}
            ("server/discover", "late") => self.late = Some(id.clone()),
            ("server/discover", "new") => answer(id, versions()),
            ("initialize", "new") => refuse(id),
            ("initialize", "late") if self.late.is_some() => {
                answer(&self.late.take().unwrap(), versions());
                answer(id, self.greeting(params));
            }
            ("initialize", _) => answer(id, self.greeting(params)),
            ("notifications/cancelled", _) => self.cancelled.push(params["requestId"].clone()),
            ("tools/list", "coy") if self.is_changed => {}
            ("tools/list", _) => self.list(id, params),
            ("tools/call", _) => self.call(id, params),
            _ if id.is_null() => {}
            _ => refuse(id),
        }
    }

    /// Returns the answer to a question as the result of the call that asked it.
    fn answered(&mut self, message: &Value) {
        let at = self.asked.iter().position(|(question, _)| *question == message["id"]);
        let (_, call) = self.asked.remove(at.unwrap());
        text(&call, message.get("result").unwrap_or(&message["error"]));
    }

    fn greeting(&self, params: &Value) -> Value {
        let info = json!({"name": "odd", "version": "1"});
        let capabilities = json!({"tools": {"listChanged": true}});
        json!({"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info})
    }

    fn list(&self, id: &Value, params: &Value) {
        let cursor = params["cursor"].as_str().unwrap_or("0");
        match self.how.as_str() {
            "endless" => {
                let next = cursor.parse::<u32>().unwrap() + 1;
                answer(id, json!({"tools": [tool(&format!("t{next}"), "")], "nextCursor": next.to_string()}));
            }
            "long_cursor" => answer(id, json!({"tools": [], "nextCursor": "x".repeat(4097)})),
            "circle" => answer(id, json!({"tools": [], "nextCursor": "again"})),
            "many" => {
                let tools: Vec<Value> = (0..3000).map(|n| tool(&format!("t{n}"), "")).collect();
                answer(id, json!({ "tools": tools }));
            }
            "pages" if cursor == "0" => answer(id, json!({"tools": [tool("first", "")], "nextCursor": "1"})),
            "pages" => answer(id, json!({"tools": [tool("second", "")]})),
            "long_list" => say_long(),
            "bytes_list" => say_bytes(BYTES),
            "bad_tools" => answer(id, json!({"tools": bad_tools()})),
            _ => answer(id, json!({"tools": self.tools()})),
        }
    }

    fn tools(&self) -> Vec<Value> {
        let names = [
            "echo",
            "hang",
            "deaf",
            "chatty",
            "die",
            "steps",
            "twice",
            "wrong_id",
            "long",
            "bytes",
            "no_sense",
            "no",
            "no_whole",
            "no_secret",
            "child",
            "mutter",
            "much",
            "die_once",
        ];
        let mut tools: Vec<Value> = names.iter().map(|name| tool(name, "does what it is called")).collect();
        tools[0]["annotations"] = json!({"readOnlyHint": true});
        tools[names.len() - 1]["annotations"] = json!({"idempotentHint": true});
        for name in ["asks", "logs", "last_first"] {
            tools.push(tool(name, "tells its client something"));
            tools.last_mut().unwrap()["annotations"] = json!({"readOnlyHint": true});
        }
        tools.push(tool("heard", "what it was asked so far"));
        tools.push(tool("cancelled", "which calls were cancelled"));
        tools.push(tool("change", if self.is_changed { "changed" } else { "changes the list" }));
        let gives = if self.is_changed { "number" } else { "string" };
        tools.push(tool("typed", "says what it gives back"));
        tools.last_mut().unwrap()["outputSchema"] =
            json!({"type": "object", "properties": {"a": {"type": gives}}});
        if self.is_changed {
            tools.push(tool("new", "was not there"));
            tools.remove(0);
        }
        tools
    }

    #[expect(clippy::zombie_processes, reason = "what it leaves behind is the test's to find")]
    fn call(&mut self, id: &Value, params: &Value) {
        let args = &params["arguments"];
        match params["name"].as_str().unwrap() {
            "echo" => text(id, args["text"].as_str().unwrap_or_default()),
            "hang" => {}
            "deaf" => loop {
                std::thread::park();
            },
            "chatty" => {
                // Notifications of every kind, again and again, and then an answer.
                for n in 0..2_000 {
                    let told = json!({"level": "info", "data": "x".repeat(100), "n": n});
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": told}));
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/nobody/knows", "params": told}));
                }
                text(id, "at last");
            }
            "die" => exit(9),
            "die_once" => {
                match OpenOptions::new().write(true).create_new(true).open(args["note"].as_str().unwrap()) {
                    Ok(_) => exit(9),
                    Err(_) => text(id, "alive"),
                }
            }
            "last_first" => {
                self.held.push((id.clone(), args["text"].clone()));
                if self.held.len() as u64 == args["of"].as_u64().unwrap() {
                    self.held.drain(..).rev().for_each(|(id, said)| text(&id, said.as_str().unwrap()));
                }
            }
            "steps" => {
                for step in 1..=3 {
                    let token = &params["_meta"]["progressToken"];
                    let step =
                        json!({"progressToken": token, "progress": step, "total": 3, "message": "step"});
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": step}));
                }
                text(id, "done");
            }
            "twice" => {
                text(id, "first");
                text(id, "second");
            }
            "wrong_id" => {
                text(&json!(123_456), "for nobody");
                text(&json!("abc"), "for nobody");
            }
            "long" => say_long(),
            "much" => {
                let result = much::much(args["how"].as_str().unwrap());
                say_bytes(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n").as_bytes());
            }
            "bytes" => say_bytes(BYTES),
            "no_sense" => say(&json!({"jsonrpc": "2.0", "id": id, "result": 5})),
            "no" => {
                let content = json!([{"type": "text", "text": "it says no\nfor a reason"}]);
                answer(id, json!({"content": content, "structuredContent": {"code": 7}, "isError": true}));
            }
            "no_whole" => answer(id, args.clone()),
            "no_secret" => {
                let secret = format!("{}{}", args["first"].as_str().unwrap(), args["last"].as_str().unwrap());
                let mut said = args.clone();
                said["content"][1]["text"] = json!(format!("it is {secret}"));
                said["content"][5]["resource"]["text"] = json!(secret);
                said["structuredContent"] = json!({ "secret": secret });
                answer(id, said);
            }
            "child" => {
                let child = Command::new("sleep").arg("600").spawn().unwrap();
                text(id, child.id());
            }
            "asks" => {
                for n in 0..args["times"].as_u64().unwrap_or(1) {
                    let (question, method, params) =
                        (format!("{n} of {id}"), &args["method"], &args["params"]);
                    say(&json!({"jsonrpc": "2.0", "id": question, "method": method, "params": params}));
                    self.asked.push((json!(question), id.clone()));
                }
            }
            "logs" => {
                for level in ["debug", "info", "error"] {
                    let log = json!({"level": level, "data": format!("it is {level}")});
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log}));
                }
                text(id, "logged");
            }
            "mutter" => {
                eprintln!("{}", args["text"].as_str().unwrap());
                text(id, "muttered");
            }
            "cancelled" => text(id, self.cancelled.len()),
            "heard" => text(id, self.heard.join(" ")),
            "change" => {
                self.is_changed = true;
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                text(id, "changed");
            }
            name => {
                let message = format!("Unknown tool: {name}");
                say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": message}}));
            }
        }
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

fn bad_tools() -> Vec<Value> {
    let mut network = tool("network", "");
    network["inputSchema"] = json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}});
    let mut deep = tool("deep", "");
    deep["inputSchema"] = (0..60).fold(json!({"type": "object"}), |inner, _| json!({"allOf": [inner]}));
    deep["inputSchema"]["type"] = json!("dict");
    let mut large = tool("large", "");
    large["inputSchema"]["default"] = json!("x".repeat(300 << 10));
    let hidden = "reads\u{1b}[2J\u{7} a file\u{202e}\u{e0041}\r\n";
    let long = tool("wordy", &"x".repeat(1 << 20));
    let mut untyped = tool("untyped", "");
    untyped["inputSchema"] = json!("object");
    let nameless = json!({"inputSchema": {"type": "object"}});
    let endless = tool(&"n".repeat(10_000), "");
    vec![
        nameless,
        json!(null),
        untyped,
        endless,
        network,
        deep,
        large,
        tool("a b", ""),
        tool("re\u{202e}daer", ""),
        tool("good", hidden),
        tool("good", "once more"),
        long,
    ]
}
