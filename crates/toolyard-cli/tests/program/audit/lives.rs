//! Logs that outlive one run of the program: appended to, held by one writer, in several parts.

#[cfg(unix)]
use crate::child::program;
use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
#[cfg(unix)]
use std::process::Child;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Runs `calls` echo calls with events in this file, and these further arguments.
fn run(events: &Path, calls: usize, more: &[&str]) -> Done {
    let echo = |at| json!({"call_id": format!("c{at}"), "name": "echo", "arguments": {"text": "hello"}});
    let calls = json!({"calls": (0..calls).map(echo).collect::<Vec<_>>()});
    let args = ["run", "-q", "--events", events.to_str().unwrap()];
    toolyard(&[&args, more].concat(), &calls.to_string())
}

/// The options of a gateway that serves one tool and records in this file.
fn gateway(events: &Path) -> [String; 5] {
    let config = events.with_file_name("toolyard.toml");
    fs::write(&config, "[builtin]\nenable = [\"echo\"]\n").unwrap();
    let [config, events] =
        [config, events.to_owned()].map(|path| path.into_os_string().into_string().unwrap());
    ["mcp".to_owned(), "--config".to_owned(), config, "--events".to_owned(), events]
}

fn audit(events: &Path) -> Done {
    toolyard(&["audit", events.to_str().unwrap()], "")
}

fn starts(text: &str) -> usize {
    text.matches("\"engine.started\"").count()
}

#[track_caller]
fn ends_with(done: &Done, code: i32, verdict: &str) {
    assert_eq!(done.code, Some(code), "{done:?}");
    assert_eq!(done.stdout.lines().last(), Some(verdict), "{done:?}");
}

/// OB-2: events are appended; each run begins a life of its own, and the log as a whole is whole.
#[test]
fn a_second_run_appends_to_the_log() {
    let events = dir("lives-append").join("log.jsonl");
    for life in 1..=3 {
        let before = fs::read_to_string(&events).unwrap_or_default();
        assert_eq!(run(&events, 2, &[]).code, Some(0));
        let now = fs::read_to_string(&events).unwrap();
        assert!(now.starts_with(&before), "the old events are as they were");
        assert_eq!(starts(&now), life);
        assert!(now[before.len()..].starts_with("{\"v\":1,\"seq\":0,"), "{now}");
    }
    let lines = fs::read_to_string(&events).unwrap().lines().count();
    ends_with(&audit(&events), 0, &format!("whole: {lines} events, 6 calls, 3 sessions"));
    let report = toolyard(&["audit", "--json", events.to_str().unwrap()], "").json();
    assert_eq!((report["engines"].as_u64(), report["cut_off"].as_u64()), (Some(3), Some(0)));
}

/// OB-2: `toolyard mcp` keeps what its last start recorded.
#[test]
fn a_restarted_gateway_keeps_the_record() {
    let events = dir("lives-gateway").join("log.jsonl");
    assert_eq!(run(&events, 1, &[]).code, Some(0));
    for life in 2..=3 {
        toolyard(&gateway(&events).each_ref().map(String::as_str), "");
        let text = fs::read_to_string(&events).unwrap();
        assert_eq!((starts(&text), text.contains("tool.completed")), (life, true), "{text}");
    }
    assert_eq!(audit(&events).code, Some(0));
}

/// I1: what a killed program left open is reported, at its place, and what came after it is still read.
#[test]
fn a_killed_life_is_told_from_the_next_one() {
    let events = dir("lives-killed").join("log.jsonl");
    assert_eq!(run(&events, 1, &[]).code, Some(0));
    let text = fs::read_to_string(&events).unwrap();
    let (before, _) = text.split_once("\"tool.completed\"").unwrap();
    fs::write(&events, before).unwrap(); // in the middle of a line
    let torn = before.lines().count();
    assert_eq!(run(&events, 2, &[]).code, Some(0));
    let done = audit(&events);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains(&format!("line {torn}: the line breaks off")), "{done:?}");
    assert!(done.stdout.contains("call c0: the call has not ended"), "{done:?}");
    assert!(done.stdout.contains("1 earlier engine without an end"), "{done:?}");
    assert!(done.stdout.contains("3 calls, 2 sessions"), "{done:?}");
    assert!(!done.stdout.contains("the log has no engine end"), "the last one has ended: {done:?}");

    // Anywhere else, such a line is damage.
    let text = fs::read_to_string(&events).unwrap();
    let damaged: Vec<&str> =
        text.lines().enumerate().map(|(at, line)| if at == torn + 3 { &line[..20] } else { line }).collect();
    let done = toolyard(&["audit", "-"], &(damaged.join("\n") + "\n"));
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.stderr.contains(&format!("line {}: not JSON", torn + 4)), "{done:?}");
}

/// A gateway that holds the log until it is dropped.
#[cfg(unix)]
struct Holder(Child);

#[cfg(unix)]
impl Holder {
    /// Starts it, and waits until it has the log.
    fn of(events: &Path) -> Self {
        let mut holder = Self(program(&gateway(events).each_ref().map(String::as_str)).spawn().unwrap());
        let lock = events.with_extension("jsonl.lock");
        let id = holder.0.id().to_string();
        while !fs::read_to_string(&lock).is_ok_and(|text| text.trim() == id) || !events.exists() {
            assert!(holder.0.try_wait().unwrap().is_none(), "it ended without taking the log");
            std::thread::yield_now();
        }
        holder
    }
}

#[cfg(unix)]
impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// OB-2: one program at a time writes a log; the second one says who does, and writes nothing. A program that was killed
/// holds nothing.
#[cfg(unix)]
#[test]
fn a_second_writer_is_refused_and_told_who_writes() {
    let events = dir("lives-two").join("log.jsonl");
    let linked = events.with_file_name("other-name.jsonl");
    let holder = Holder::of(&events);
    let id = holder.0.id();
    std::os::unix::fs::symlink(&events, &linked).unwrap();
    for name in [&events, &linked] {
        let done = run(name, 1, &[]);
        let why = format!(
            "toolyard: --events {}: process {id} writes this file; give each program its own, for example with {{pid}} in \
             the name\n",
            events.canonicalize().unwrap().display()
        );
        assert_eq!((done.code, done.stdout.as_str(), done.stderr), (Some(2), "", why));
    }
    assert_eq!(starts(&fs::read_to_string(&events).unwrap()), 1);
    drop(holder);
    assert_eq!(run(&events, 1, &[]).code, Some(0));
    let done = audit(&events);
    assert!(done.stdout.contains("1 earlier engine without an end"), "{done:?}");
}

/// OB-2: `{pid}` in the name gives every program a file of its own.
#[cfg(unix)]
#[test]
fn every_process_may_have_a_file_of_its_own() {
    let dir = dir("lives-pid");
    let name = dir.join("log-{pid}.jsonl");
    let mut children: Vec<Child> = (0..3)
        .map(|_| program(&["run", "-q", "--events", name.to_str().unwrap()]).spawn().unwrap())
        .collect();
    for child in &mut children {
        let calls = json!({"calls": [{"call_id": "c", "name": "echo", "arguments": {"text": "x"}}]});
        serde_json::to_writer(child.stdin.take().unwrap(), &calls).unwrap();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
        assert_eq!(audit(&dir.join(format!("log-{}.jsonl", child.id()))).code, Some(0));
    }
}

/// OB-2: the log and what lies beside it are their owner's alone; a part that is started later is as readable as the
/// one before.
#[cfg(unix)]
#[test]
fn the_log_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let events = dir("lives-private").join("log.jsonl");
    let mode = |name: &Path| fs::metadata(name).unwrap().permissions().mode() & 0o777;
    run(&events, 1, &[]);
    assert_eq!((mode(&events), mode(&events.with_extension("jsonl.lock"))), (0o600, 0o600));
    fs::set_permissions(&events, fs::Permissions::from_mode(0o640)).unwrap();
    run(&events, 40, &["--events-max-bytes", "4096"]);
    assert_eq!((mode(&events), mode(&events.with_extension("jsonl.1"))), (0o640, 0o640));
}

/// The parts of a log, oldest first.
fn parts(events: &Path) -> Vec<PathBuf> {
    let part = |number: usize| events.with_extension(format!("jsonl.{number}"));
    let finished = (1..).map(part).take_while(|part| part.exists());
    finished.chain([events.to_owned()]).collect()
}

/// OB-2: a full file is kept under the next number, over several runs; an audit reads all parts as one log, and a part
/// that is missing is missed.
#[test]
fn a_log_in_parts_is_read_as_one() {
    let events = dir("lives-parts").join("log.jsonl");
    for _ in 0..2 {
        assert_eq!(run(&events, 30, &["--events-max-bytes", "8KiB"]).code, Some(0));
    }
    let parts = parts(&events);
    assert!(parts.len() > 4, "{parts:?}");
    let texts: Vec<String> = parts.iter().map(|part| fs::read_to_string(part).unwrap()).collect();
    assert!(texts.iter().all(|text| text.len() <= 8 << 10 && text.ends_with('\n') && !text.is_empty()));
    let lines: usize = texts.iter().map(|text| text.lines().count()).sum();
    let whole = format!("whole: {lines} events, 60 calls, 2 sessions");
    ends_with(&audit(&events), 0, &whole);
    ends_with(&toolyard(&["audit", "-"], &texts.concat()), 0, &whole);

    let report = toolyard(&["audit", "--json", events.to_str().unwrap()], "").json();
    for call in report["calls"].as_array().unwrap() {
        let text = fs::read_to_string(call["file"].as_str().unwrap()).unwrap();
        let line = text.lines().nth(call["line"].as_u64().unwrap() as usize - 1).unwrap();
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!((&event["event"], &event["call_id"]), (&json!("tool.call.received"), &call["call_id"]));
    }

    fs::remove_file(&parts[1]).unwrap();
    let done = audit(&events);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.stdout.contains(&format!("{} line 1, session", parts[2].display())), "{done:?}");
    fs::remove_file(&events).unwrap();
    assert_eq!(audit(&events).code, Some(1), "the finished parts are still read");
    fs::write(&parts[2], "{\"v\":1,").unwrap();
    let done = audit(&events);
    assert!(done.stdout.contains(&format!("{} line 1: the line breaks off", parts[2].display())), "{done:?}");
}

/// OB-2: events are never mixed with something else.
#[test]
fn a_file_of_something_else_is_left_alone() {
    let events = dir("lives-foreign").join("notes.md");
    for text in ["# Notes\n", "{\"a\":1}\n", "{\"v\":2,\"seq\":1}\n", " "] {
        fs::write(&events, text).unwrap();
        let done = run(&events, 1, &[]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{done:?}");
        assert!(done.stderr.contains("holds something other than events of this version"), "{done:?}");
        assert_eq!(fs::read_to_string(&events).unwrap(), text);
    }
    let done = run(&events, 1, &["--events-max-bytes", "4095"]);
    assert!(done.stderr.contains("at least 4KiB"), "{done:?}");
}

/// OB-2: no character of an event ends a line elsewhere or acts on a terminal, and nor does the audit's JSON.
#[test]
fn lines_of_events_have_no_odd_characters() {
    let events = dir("lives-odd").join("log.jsonl");
    let odd = "a\u{2028}b\u{2029}c\u{85}d\u{9b}2Je\u{202e}f\u{200b}g\u{feff}";
    let calls = json!({"calls": [{"call_id": format!("id{odd}"), "name": odd, "arguments": {"text": odd}}]});
    let done = toolyard(&["run", "-q", "--events", events.to_str().unwrap()], &calls.to_string());
    let text = fs::read_to_string(&events).unwrap();
    let report = toolyard(&["audit", "--json", events.to_str().unwrap()], "");
    let plan = toolyard(&["plan", "--json"], &calls.to_string());
    for (what, text) in
        [("a result", &done.stdout), ("an event", &text), ("audit", &report.stdout), ("plan", &plan.stdout)]
    {
        assert!(text.contains("\\u2028b\\u2029c\\u0085d\\u009b2Je\\u202ef\\u200bg\\ufeff"), "{what}: {text}");
        assert!(!text.chars().any(|char| odd.contains(char) && !char.is_ascii()), "{what}: {text}");
    }
    assert_eq!(done.json()["results"][0]["call_id"], format!("id{odd}"), "the data are the same");
    assert_eq!(report.json()["calls"][0]["call_id"], format!("id{odd}"));
}
