//! How `toolyard serve` ends: a first signal lets running calls end and answers whoever waits, a second one does not.

use super::{Served, Two};
use crate::place::dir;
use rustix::process::{Pid, Signal, test_kill_process};
use serde_json::{Value, json};
use std::{fs, io::Read as _, net::TcpStream, path::Path, process::Command};

/// A server with a command that does not end when it is asked to, and a client that waits for it.
struct Stuck {
    served: Served,
    waiting: TcpStream,
    /// The process of the command.
    pid: Pid,
}

/// A command that is killed only some time after it was asked to end.
fn stuck(place: &Path) -> Stuck {
    let pipe = place.join("up");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let two = Two::new();
    fs::write(
        place.join("toolyard.toml"),
        format!(
            "[builtin]\nenable = [\"shell\"]\n[confirmation]\nper_tool = {{ shell = \"auto\" }}\n{}",
            two.config
        ),
    )
    .unwrap();
    let events = place.join("log.jsonl");
    let served = Served::start(place, &["--events", events.to_str().unwrap()]);
    assert_eq!(served.post("/sessions", Some(&two.agent), &json!({"id": "a"})).0, 201);
    let command = "trap '' TERM; echo $$ > up; while :; do sleep 0.1; done";
    two.turn(&served, "shell", &json!({ "command": command }));
    let pid = fs::read_to_string(&pipe).unwrap().trim().parse().unwrap();
    let waiting = served.send("GET /sessions/a/turns/1?wait=300&to=neutral", Some(&two.agent), "");
    Stuck { served, waiting, pid: Pid::from_raw(pid).unwrap() }
}

/// Waits until the server starts nothing new, because a signal has reached it.
fn draining(served: &Served) {
    let is_ready = || {
        let mut answer = String::new();
        served.send("GET /readyz", None, "").read_to_string(&mut answer).unwrap();
        !answer.starts_with("HTTP/1.1 503 ")
    };
    while is_ready() {}
}

/// What the file tells of the end: the code with which the call failed, and whether the engine came to its own end.
fn told(place: &Path) -> (Value, bool) {
    let text = fs::read_to_string(place.join("log.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(events.iter().any(|event| event["event"] == "engine.drain"), "{text}");
    let failed = events.iter().find(|event| event["event"] == "tool.failed");
    let code = failed.map_or(Value::Null, |failed| failed["code"].clone());
    (code, events.iter().any(|event| event["step"] == "stopped"))
}

/// SC-8: after one signal a call that does not end is cancelled, and whoever waits for it is answered.
#[test]
fn a_first_signal_answers_whoever_waits() {
    let place = dir("serve-first-signal");
    let Stuck { served, waiting, .. } = stuck(&place);
    assert_eq!(served.end(), Some(130));
    let (status, turn) = Served::answer(waiting);
    assert_eq!((status, &turn["state"]), (200, &json!("ended")), "{turn}");
    assert_eq!(told(&place), (json!("cancelled"), true));
}

/// SC-8: a second signal ends the program at once: it waits neither for the call nor for whoever waits for it, has written
/// the events that there were, and leaves no process.
#[test]
fn a_second_signal_waits_for_nothing() {
    for signals in [[Signal::INT, Signal::INT], [Signal::TERM, Signal::INT], [Signal::INT, Signal::TERM]] {
        let place = dir("serve-second-signal");
        let Stuck { mut served, mut waiting, pid } = stuck(&place);
        served.signal(signals[0]);
        draining(&served);
        served.signal(signals[1]);
        assert_eq!(served.child.wait().unwrap().code(), Some(130), "{signals:?}");
        // The call was dropped where it was, which the file says unless the program was gone before.
        let (code, has_stopped) = told(&place);
        assert!(code != "cancelled" && !has_stopped, "{signals:?}: {code}");
        let mut answer = Vec::new();
        // It is closed, with or without an answer.
        let _ = waiting.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("\"ended\""), "{signals:?}");
        if cfg!(target_os = "linux") {
            while test_kill_process(pid).is_ok() {
                std::thread::yield_now();
            }
        }
    }
}
