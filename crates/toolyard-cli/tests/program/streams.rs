//! A response that is still being streamed: calls run as they arrive, with the same results as the whole text.
#![cfg(unix)]

use crate::{
    child::{Done, program, root, toolyard},
    place::dir,
    workspace::workspace,
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

/// How long to wait for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program with an input that is still being written. Its events come through a named pipe.
struct Writing {
    child: Child,
    input: ChildStdin,
    events: Receiver<String>,
}

impl Writing {
    /// Starts the program; the pipe gets this name.
    fn start(name: &str, args: &[&str]) -> Self {
        let pipe = dir(&format!("events-{name}")).join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut child =
            program(&[&["run", "--events", pipe.to_str().unwrap()], args].concat()).spawn().unwrap();
        let (sender, events) = channel();
        // This blocks until the program opens the pipe, which it does after reading its first bytes.
        thread::spawn(move || {
            let lines = BufReader::new(File::open(pipe).unwrap()).lines();
            for line in lines {
                let _ = sender.send(line.unwrap()); // the receiver may be gone
            }
        });
        Self { input: child.stdin.take().unwrap(), child, events }
    }

    fn write(&mut self, text: &[u8]) {
        self.input.write_all(text).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits for a call's event of this name.
    fn wait_for(&self, call: &str, event: &str) {
        let (call, event) = (format!("\"call_id\":\"{call}\""), format!("\"event\":\"{event}\""));
        loop {
            let line = self.events.recv_timeout(PATIENCE).expect("the call does not wait for what follows");
            if line.contains(&call) && line.contains(&event) {
                return;
            }
        }
    }

    /// Closes the input, and reads the rest of the output.
    fn end(self) -> Done {
        drop(self.input);
        left(self.child)
    }
}

fn left(child: Child) -> Done {
    let output = child.wait_with_output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    Done { code: output.status.code(), stdout, stderr }
}

fn event(value: Value) -> String {
    format!("data: {value}\n\n")
}

/// The start of an Anthropic call, with the text of its arguments.
fn begun(index: usize, id: &str, name: &str, arguments: &str) -> String {
    let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": arguments});
    event(json!({"type": "content_block_start", "index": index, "content_block": block}))
        + &event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn stop(index: usize) -> String {
    event(json!({"type": "content_block_stop", "index": index}))
}

fn echo(index: usize, id: &str) -> String {
    begun(index, id, "echo", r#"{"text":"x"}"#) + &stop(index)
}

/// CL-5: each call of the sample ends before the next one is written, and the results equal those of the whole text.
#[test]
fn every_call_runs_before_the_next_is_written() {
    const SAMPLE: &str = "examples/responses/anthropic-stream.sse";
    let sample = fs::read_to_string(root().join(SAMPLE)).unwrap();
    for (way, more) in [("together", [].as_slice()), ("one-by-one", &["--sequential"])] {
        let to = workspace(&format!("streamed-{way}"));
        let args = ["--approve", "auto", "--workspace", to.to_str().unwrap(), "--report", "none"];
        let args = [args.as_slice(), more].concat();
        let mut writing = Writing::start(&format!("sample-{way}"), &args);
        let mut calls = 0;
        for event in sample.split_inclusive("\n\n") {
            writing.write(event.as_bytes());
            if event.contains("input_json_delta") {
                continue;
            }
            if event.contains("content_block_stop") && !event.contains("\"index\": 0") {
                calls += 1;
                let kind = if calls == 7 { "tool.failed" } else { "tool.completed" };
                writing.wait_for(&format!("toolu_0{calls}"), kind);
            }
        }
        assert_eq!(calls, 8);
        let streamed = writing.end();

        let to = workspace(&format!("streamed-whole-{way}"));
        let args = ["run", "--approve", "auto", "--workspace", to.to_str().unwrap(), "--report", "none"];
        let whole = toolyard(&[args.as_slice(), more].concat(), &sample);
        assert_eq!(streamed.code, Some(1), "{}", streamed.stderr);
        assert_eq!(
            (streamed.stdout, streamed.stderr, streamed.code),
            (whole.stdout, whole.stderr, whole.code)
        );
    }
}

/// CL-5: in a Chat stream a call is complete when the next one starts. The format is named, and the output has another.
#[test]
fn a_call_runs_when_the_next_begins() {
    let delta = |index: usize, id: &str| {
        let function = json!({"name": "echo", "arguments": "{\"text\":\"é\"}"});
        let call = json!({"index": index, "id": id, "type": "function", "function": function});
        event(json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}))
    };
    let end = event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}))
        + "data: [DONE]\n\n";
    let args = ["--from", "openai-chat", "--to", "gemini", "-q"];
    let mut writing = Writing::start("chat", &args);
    writing.write((delta(0, "a") + &delta(1, "b")).as_bytes());
    writing.wait_for("a", "tool.completed");
    writing.write(end.as_bytes());
    let streamed = writing.end();
    let whole = toolyard(&[&["run"], args.as_slice()].concat(), &(delta(0, "a") + &delta(1, "b") + &end));
    assert_eq!((streamed.code, &streamed.stdout), (Some(0), &whole.stdout));
    assert_eq!(streamed.json()["parts"].as_array().unwrap().len(), 2);
}

/// The time that the model takes to write a call does not count as waiting.
#[test]
fn the_report_counts_from_when_a_call_came() {
    let to = dir("streamed-report");
    let mut writing = Writing::start(
        "report",
        &["--report", "json", "--approve", "auto", "--workspace", to.to_str().unwrap()],
    );
    writing.write(echo(0, "a").as_bytes());
    writing.wait_for("a", "tool.completed");
    let write = begun(1, "b", "write_file", r#"{"path":"b.txt","content":"x"}"#) + &stop(1);
    writing.write(write.as_bytes());
    writing.wait_for("b", "tool.completed");
    let done = writing.end();
    let report: Value = serde_json::from_str(&done.stderr).unwrap();
    let [a, b] = [0, 1].map(|at| &report["timeline"][at]);
    assert_eq!((&report["calls"], &report["runs"]), (&json!(2), &json!(2)));
    assert!(b["came_ms"].as_f64() >= a["ended_ms"].as_f64() && a["came_ms"].as_f64() < b["came_ms"].as_f64());
    assert!(!b["waited_for"].to_string().contains("run"), "{b}");
}

/// Checks the results of two calls: the first is complete, the second was cut off.
fn one_and_a_half(done: &Done) {
    let content = done.json()["content"].clone();
    assert_eq!(content.as_array().unwrap().len(), 2);
    assert_eq!((&content[0]["content"], &content[0]["is_error"]), (&json!("x"), &Value::Null));
    assert_eq!((&content[1]["tool_use_id"], &content[1]["is_error"]), (&json!("b"), &json!(true)));
}

/// CL-5: finished calls have their results and the half call is `invalid_input`, wherever the text breaks off.
#[test]
fn a_stream_that_breaks_costs_the_half_call_alone() {
    let half = begun(1, "b", "echo", r#"{"text":"木"#);
    let inside = half.find('木').unwrap() + 1;
    for end in [half.len(), half.len() - 2, inside, inside + 1, inside - 1] {
        let mut writing = Writing::start("broken", &["--report", "none"]);
        writing.write(echo(0, "a").as_bytes());
        writing.wait_for("a", "tool.completed");
        writing.write(&half.as_bytes()[..end]);
        let done = writing.end();
        assert_eq!(done.code, Some(1), "{}", done.stderr);
        one_and_a_half(&done);
        let lines: Vec<&str> = done.stderr.lines().collect();
        assert!(lines[0].ends_with(
            "the anthropic stream broke off inside a call, which is answered as invalid; fetch it again"
        ));
        assert!(lines[1].starts_with("toolyard: invalid_input: b 'echo': "), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }
}

/// Calls that arrived before the provider's error have results; the exit code says that the input was bad.
#[test]
fn an_error_in_the_stream_comes_after_the_results_of_what_ran() {
    let error =
        event(json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}));
    let line = "toolyard: standard input: the provider returned an error: Overloaded";
    let mut writing = Writing::start("error", &["--report", "none"]);
    writing.write(echo(0, "a").as_bytes());
    writing.wait_for("a", "tool.completed");
    writing.write((begun(1, "b", "echo", "{\"te") + &error + &echo(2, "c")).as_bytes());
    let done = writing.end();
    assert_eq!(done.code, Some(3));
    one_and_a_half(&done);
    assert!(done.stderr.contains("invalid_input: b 'echo'"));
    assert_eq!(done.stderr.lines().last(), Some(line));

    let none = toolyard(&["run"], &error);
    assert_eq!((none.code, none.stdout.as_str(), none.stderr), (Some(3), "", format!("{line}\n")));
    let whole = toolyard(&["run", "--report", "none"], &(echo(0, "a") + "data: {]\n\n"));
    assert_eq!((whole.code, &whole.json()["content"][0]["content"]), (Some(3), &json!("x")));
    assert_eq!(
        whole.stderr,
        "toolyard: standard input: event 4 of the stream: not JSON: key must be a string at line 1 column 2\n"
    );
    let bytes = [echo(0, "a").as_bytes(), b"data: \xff\n\n"].concat();
    let mut writing = Writing::start("error-bytes", &["--report", "none"]);
    writing.write(&bytes);
    let done = writing.end();
    let line = format!(
        "toolyard: standard input: byte {} is not valid UTF-8: save the file as UTF-8\n",
        bytes.len() - 3
    );
    assert_eq!(
        (done.code, &done.stderr, &done.json()["content"][0]["content"]),
        (Some(3), &line, &json!("x"))
    );
}

/// SC-8: an interrupt waits neither for the model nor for calls that are not written yet.
#[test]
fn an_interrupt_ends_a_stream_that_is_still_being_written() {
    let interrupt = |writing: &Writing| {
        let status = Command::new("kill").args(["-INT", &writing.child.id().to_string()]).status().unwrap();
        assert!(status.success());
    };
    let mut writing = Writing::start("interrupt", &["--report", "none"]);
    writing.write((echo(0, "a") + &begun(1, "b", "echo", "{\"te")).as_bytes());
    writing.wait_for("a", "tool.completed");
    interrupt(&writing);
    let Writing { child, input, .. } = writing;
    let done = left(child);
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    assert_eq!(done.json()["content"][0]["content"], "x");
    drop(input);
}

/// Toolset calls run in order up to the first failure, in a stream as in a whole message.
#[test]
fn a_toolset_in_a_stream_stops_at_its_first_failure() {
    let click = |index: usize, id: &str| {
        let block =
            json!({"type": "tool_use", "id": id, "name": "click", "input": {}, "toolset_name": "browser"});
        event(json!({"type": "content_block_start", "index": index, "content_block": block})) + &stop(index)
    };
    let mut writing = Writing::start("toolset", &["--report", "none"]);
    writing.write(echo(0, "a").as_bytes());
    writing.wait_for("a", "tool.completed");
    writing.write((click(1, "b") + &click(2, "c") + &echo(3, "a") + &echo(4, "d")).as_bytes());
    let done = writing.end();
    let contents: Vec<Value> =
        done.json()["content"].as_array().unwrap().iter().map(|block| block["content"].clone()).collect();
    assert_eq!(done.code, Some(1));
    assert_eq!((&contents[0], &contents[4]), (&json!("x"), &json!("x")));
    assert!(contents[1].as_str().unwrap().starts_with("Tool 'click' not found."));
    assert_eq!(contents[2], "Not executed: an earlier action in this turn failed.");
    assert!(contents[3].as_str().unwrap().starts_with("call id 'a' is used twice"));
}

#[test]
fn a_stream_without_calls_and_a_plan_of_one_are_as_before() {
    let ping = event(json!({"type": "ping"}));
    let done = toolyard(&["run"], &ping);
    let line = "toolyard: standard input: no tool calls in this anthropic response: the model is done, nothing was run";
    assert_eq!((done.code, done.stderr.lines().next()), (Some(0), Some(line)));
    assert_eq!(done.json()["content"], json!([]));
    let done = toolyard(&["plan"], &(ping + &echo(0, "a")));
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    assert!(done.stdout.contains("echo"), "{}", done.stdout);
}
