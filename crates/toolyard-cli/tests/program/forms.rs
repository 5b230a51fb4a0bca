//! One contract for all forms: the same cases, with the same expectations, in every sandbox that programs have.
//!
//! ```text
//!   Case ─► a script ─┬─ host, process   a command
//!                     └─ remote          a service that gives what the script would have meant
//! ```
//!
//! Each form and case prints a line that says what held. Another form is another entry of `Form::ALL`.
#![cfg(target_os = "linux")]

use crate::{
    child::{Done, toolyard},
    confined::is_missing,
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
};

/// What a program does, in each form, and what follows.
struct Case {
    name: &'static str,
    /// As a command.
    script: &'static str,
    /// As a service: status, more headers, body. `None` gives back the arguments; no answer at all where there is none.
    answer: Option<(&'static str, &'static str, Option<&'static str>)>,
    output: &'static str,
    expect: fn(&Value),
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
}

fn fails(result: &Value, code: &str) {
    assert_eq!(result["error"]["code"], code, "{result}");
}

const CASES: [Case; 7] = [
    Case {
        name: "gives back its arguments",
        script: "cat",
        answer: Some(("200 OK", "", None)),
        output: "text",
        expect: |result| assert_eq!(text(result), r#"{"b":1,"a":"x"}"#, "{result}"),
    },
    Case {
        name: "gives a document",
        script: "cat >/dev/null; echo '{\"words\": 3}'",
        answer: Some(("200 OK", "", Some("{\"words\": 3}"))),
        output: "json",
        expect: |result| assert_eq!(result["structured"], json!({"words": 3}), "{result}"),
    },
    Case {
        name: "gives no document where one is due",
        script: "cat >/dev/null; echo 3 words",
        answer: Some(("200 OK", "", Some("3 words"))),
        output: "json",
        expect: |result| fails(result, "output_invalid"),
    },
    Case {
        name: "fails",
        script: "cat >/dev/null; echo no such text; exit 3",
        answer: Some(("404 Not Found", "", Some("no such text"))),
        output: "text",
        expect: |result| {
            fails(result, "execution_error");
            assert_eq!(result["error"]["outcome"], "failed", "{result}");
            assert!(result.to_string().contains("no such text"), "{result}");
        },
    },
    Case {
        name: "is busy",
        script: "cat >/dev/null; echo '{\"error\":{\"message\":\"busy\",\"retry_after_ms\":2000}}'; exit 75",
        answer: Some(("503 Service Unavailable", "retry-after: 2\r\n", Some("busy"))),
        output: "text",
        expect: |result| {
            fails(result, "transient");
            assert_eq!(result["error"]["retry_after_ms"], 2000, "{result}");
        },
    },
    Case {
        name: "reads no input",
        script: "echo done",
        answer: Some(("200 OK", "connection: close\r\n", Some("done\n"))),
        output: "text",
        expect: |result| assert_eq!(text(result), "done\n", "{result}"),
    },
    Case {
        name: "does not end",
        script: "echo so far; exec sleep 600",
        answer: None,
        output: "text",
        expect: |result| fails(result, "timeout"),
    },
];

/// Where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Host,
    Process,
    Remote,
}

impl Form {
    const ALL: [Self; 3] = [Self::Host, Self::Process, Self::Remote];

    const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Process => "process",
            Self::Remote => "remote",
        }
    }

    /// The keys of the tool that make it this program.
    fn program(self, case: &Case, place: &Path) -> String {
        match self {
            Self::Host | Self::Process => {
                fs::write(place.join("tool.sh"), case.script).unwrap();
                "command = [\"sh\", \"./tool.sh\"]".to_owned()
            }
            Self::Remote => format!("url = \"{}\"\nallow_private = true", service(case.answer)),
        }
    }
}

/// A service on the loopback that answers every request in this way.
fn service(answer: Option<(&'static str, &'static str, Option<&'static str>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        let mut unanswered = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut reader, mut head) = (BufReader::new(stream.try_clone().unwrap()), String::new());
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
            let lower = head.to_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut body = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            let Some((status, more, given)) = answer else {
                unanswered.push(stream);
                continue;
            };
            let request: Value = serde_json::from_slice(&body).unwrap();
            let text = given.map_or_else(|| request["arguments"].to_string(), str::to_owned);
            let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{more}\r\n", text.len());
            // A caller that has its answer may be gone.
            let _ = stream.write_all(format!("{head}{text}").as_bytes());
        }
    });
    url
}

fn run(form: Form, number: usize, case: &Case) -> Value {
    let place: PathBuf = dir(&format!("forms-{}-{number}", form.name())).canonicalize().unwrap();
    fs::create_dir(place.join("work")).unwrap();
    let (sandbox, output) = (form.name(), case.output);
    let config = format!(
        "[workspace]\nroot = \"work\"\n[retry]\nmax_attempts = 1\n[policy.rules]\n\
         t = {{ sandbox = \"{sandbox}\", wall_time = \"5s\" }}\n[program.t]\ndescription = \"A tool\"\n\
         side_effects = \"read\"\noutput = \"{output}\"\n{}\n",
        form.program(case, &place)
    );
    let file = place.join("toolyard.toml");
    fs::write(&file, config).unwrap();
    let calls = json!({"calls": [{"call_id": "a", "name": "t", "arguments": {"b": 1, "a": "x"}}]});
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
    let done: Done = toolyard(&args, &calls.to_string());
    done.json()["results"][0].take()
}

/// SB-2, SB-3: what a program does means the same wherever it runs.
#[test]
fn one_contract_holds_in_every_form() {
    let forms = Form::ALL.into_iter().filter(|form| *form != Form::Process || !is_missing());
    for form in forms {
        for (number, case) in CASES.iter().enumerate() {
            let result = run(form, number, case);
            (case.expect)(&result);
            eprintln!("{:<8} a program that {}: held", form.name(), case.name);
        }
    }
}
