//! Signals: finished results are printed, the rest are `shutting_down` or `cancelled`, the exit code is 130.
#![cfg(unix)]

use crate::{child::program, place::dir};
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command},
    thread,
};

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// SC-8: the program waits for a line that never comes.
#[test]
fn an_interrupt_while_waiting_for_input_keeps_what_was_printed() {
    for name in ["-INT", "-TERM"] {
        let mut child = program(&["run", "--from", "episodes", "-q"]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let turn = json!([{"call_id": "a", "name": "echo", "arguments": {"text": "x"}}]);
        writeln!(stdin, "{}", json!({"id": "e", "turns": [turn, turn]})).unwrap();
        let mut lines = String::new();
        stdout.read_line(&mut lines).unwrap();
        stdout.read_line(&mut lines).unwrap();
        signal(&child, name);
        stdout.read_to_string(&mut lines).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{name}");
        let ok = |line: &str| serde_json::from_str::<Value>(line).unwrap()["results"][0]["ok"] == true;
        assert_eq!(lines.lines().filter(|line| ok(line)).count(), 2);
        drop(stdin);
    }
}

/// The result of an interrupted batch of writes.
struct Interrupted {
    /// Ids and codes, in call order.
    results: Vec<(String, String)>,
    /// The steps of the drain, from the events after the signals.
    steps: Vec<String>,
}

/// Interrupts a batch of writes once the first of them has ended.
fn interrupted(name: &str, signals: &[&str], is_stream: bool) -> Interrupted {
    const WRITES: usize = 2_000;
    let workspace = dir(name);
    let workspace = workspace.to_str().unwrap();
    // Events go to standard error, which is a pipe: their first lines show that calls run.
    let args = ["run", "-q", "--approve", "auto", "--events", "/dev/stderr", "--workspace", workspace];
    // The log goes there too, and on a busy machine tells of a write that was abandoned.
    let mut child = program(&args).args(["--from", "neutral"]).env("TOOLYARD_LOG", "off").spawn().unwrap();
    let call = |index: usize| {
        let arguments = json!({"path": format!("{}.txt", index % 10), "content": "x"});
        json!({"call_id": format!("c{index}"), "name": "write_file", "arguments": arguments})
    };
    let batch = json!({"calls": (0..WRITES).map(call).collect::<Vec<_>>()}).to_string();
    let batch = if is_stream { format!("data: {batch}\n\n") } else { batch };
    let mut stdin = child.stdin.take().unwrap();
    // A stream is left open: the model could still be writing.
    let writer = thread::spawn(move || {
        stdin.write_all(batch.as_bytes()).unwrap();
        is_stream.then_some(stdin)
    });
    let mut events = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"tool.completed\"") {
        line.clear();
        assert!(events.read_line(&mut line).unwrap() > 0, "the batch ended before the first write did");
    }
    signals.iter().for_each(|name| signal(&child, name));
    let reader = thread::spawn(move || {
        let mut text = String::new();
        events.read_to_string(&mut text).unwrap();
        text
    });
    let output = child.wait_with_output().unwrap();
    let events = reader.join().unwrap();
    drop(writer.join().unwrap());
    assert_eq!(output.status.code(), Some(130));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let results = results["results"].as_array().unwrap();
    assert_eq!(results.len(), WRITES);
    let text = |value: &Value| value.as_str().unwrap_or("ok").to_owned();
    let results =
        results.iter().map(|result| (text(&result["call_id"]), text(&result["error"]["code"]))).collect();
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let steps = events.filter(|event| event["event"] == "engine.drain").map(|event| text(&event["step"]));
    Interrupted { results, steps: steps.collect() }
}

/// SC-4, SC-8: in call order, finished writes come first, and no write after them has run.
fn finished_then_stopped(Interrupted { results, .. }: &Interrupted) {
    let ids = results.iter().enumerate().all(|(index, (id, _))| *id == format!("c{index}"));
    assert!(ids);
    let finished = results.iter().take_while(|(_, code)| code == "ok").count();
    assert!(finished >= 1);
    let stopped = |code: &str| code == "shutting_down" || code == "cancelled";
    let odd: Vec<_> = results[finished..].iter().filter(|(_, code)| !stopped(code)).collect();
    assert!(odd.is_empty(), "after {finished}: {odd:?}");
    println!("{finished} writes finished, {} did not", results.len() - finished);
    assert!(finished < results.len(), "the interrupt came too late to tell");
}

/// SC-8: the steps of a drain, in order. The cancel step occurs only if something still runs at that point.
fn drained(Interrupted { steps, results }: &Interrupted) {
    let steps: Vec<&str> = steps.iter().map(String::as_str).filter(|step| *step != "cancel").collect();
    assert_eq!(steps, ["refuse", "clear_queue", "finish", "stopped"]);
    // A running write had its grace: it finished, or reported itself that it was stopped.
    let cancelled = results.iter().filter(|(_, code)| code == "cancelled").count();
    assert!(cancelled <= 1, "{cancelled} writes were cancelled");
}

#[test]
fn a_first_signal_drains_the_engine() {
    for (name, is_stream) in [("batch", false), ("stream", true)] {
        for signal in ["-INT", "-TERM"] {
            let done = interrupted(&format!("interrupt-once-{name}{signal}"), &[signal], is_stream);
            finished_then_stopped(&done);
            drained(&done);
        }
    }
}

#[test]
fn a_second_signal_still_prints_every_result() {
    finished_then_stopped(&interrupted("interrupt-twice", &["-INT", "-INT"], false));
    finished_then_stopped(&interrupted("interrupt-twice-mixed", &["-TERM", "-INT"], false));
    finished_then_stopped(&interrupted("interrupt-stream-twice", &["-INT", "-TERM"], true));
}

/// SC-8: the second signal ends the program although its main thread is stuck: it writes to a pipe that nobody reads.
#[test]
fn a_second_signal_ends_a_program_that_is_stuck() {
    let text = "x".repeat(1_000);
    let call = |n: usize| json!({"call_id": format!("c{n}"), "name": "echo", "arguments": {"text": text}});
    let batch = json!({"calls": (0..1_000).map(call).collect::<Vec<_>>()}).to_string();
    let mut child = program(&["run", "--from", "neutral", "-q"]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(batch.as_bytes()).unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0];
    stdout.read_exact(&mut first).unwrap(); // it prints, and a megabyte does not fit in the pipe
    ["-INT", "-TERM"].iter().for_each(|name| signal(&child, name));
    assert_eq!(child.wait().unwrap().code(), Some(130));
    drop(stdout);
}
