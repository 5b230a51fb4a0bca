//! Reports and events.

use crate::{
    child::{program, toolyard},
    place::dir,
    workspace::workspace,
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Stdio};

fn reads(calls: usize) -> String {
    let call =
        |index: usize| json!({"call_id": format!("c{index}"), "name": "echo", "arguments": {"text": "x"}});
    json!({"calls": (0..calls).map(call).collect::<Vec<_>>()}).to_string()
}

#[test]
fn the_json_report_is_one_document() {
    let workspace = workspace("report-json");
    let workspace = workspace.to_str().unwrap();
    let done = toolyard(&["run", "--report", "json", "examples/batch.json", "--workspace", workspace], "");
    let report: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!((done.code, &report["exit_code"]), (Some(1), &json!(1)));
    assert_eq!((&report["calls"], &report["runs"]), (&json!(8), &json!(5)));
    let timeline = report["timeline"].as_array().unwrap();
    assert_eq!(timeline.len(), 8);
    let ran: f64 = timeline.iter().filter_map(|call| call["ran_ms"].as_f64()).sum();
    assert!((report["sum_of_run_times_ms"].as_f64().unwrap() - ran).abs() < 0.01, "{ran}: {report}");
    assert_eq!(report["one_by_one_ms"], Value::Null);
    assert_eq!((&timeline[3]["error"], &timeline[3]["started_ms"]), (&json!("user_denied"), &Value::Null));
    let (ready, ended) =
        (timeline[0]["ready_ms"].as_f64().unwrap(), timeline[0]["ended_ms"].as_f64().unwrap());
    assert!(ready <= ended && ended <= report["wall_ms"].as_f64().unwrap());
    assert!(report["notes"]["to_allow"].as_str().unwrap().contains("--approve auto"));
}

#[test]
fn one_by_one_every_call_is_a_run_of_its_own() {
    let check = |more: &[&str], runs: usize| {
        let args = [&["run", "--report", "json"], more].concat();
        let report: Value = serde_json::from_str(&toolyard(&args, &reads(5)).stderr).unwrap();
        assert_eq!(report["runs"], json!(runs));
    };
    check(&[], 1);
    check(&["--sequential"], 5);
}

#[test]
fn a_narrow_session_is_named_as_what_calls_waited_for() {
    let call =
        |index: usize| json!({"call_id": index, "name": "read_file", "arguments": {"path": "plants.csv"}});
    let batch = json!({"calls": (0..200).map(call).collect::<Vec<_>>()}).to_string();
    let args = ["run", "--report", "json", "--max-in-flight", "1", "--workspace", "examples/workspace"];
    let done = toolyard(&args, &batch);
    let report: Value = serde_json::from_str(&done.stderr).unwrap();
    let waited =
        report["timeline"].as_array().unwrap().iter().flat_map(|call| call["waited_for"].as_array().unwrap());
    let mut waited = waited.map(|wait| (wait["what"].as_str().unwrap(), wait["width"].as_u64()));
    assert!(waited.any(|wait| wait == ("max_in_flight", Some(1))));
}

/// KT-13: there is a bounded number of rows, and what has none is counted. Which calls share one depends on their times.
#[test]
fn long_batches_have_a_short_timeline() {
    let call = |index: usize| match index % 2 {
        0 => json!({"call_id": format!("c{index}"), "name": "echo", "arguments": {"text": "x"}}),
        _ => json!({"call_id": format!("c{index}"), "name": "nothing", "arguments": {}}),
    };
    let batch = json!({"calls": (0..500).map(call).collect::<Vec<_>>()}).to_string();
    let done = toolyard(&["run"], &batch);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(done.code, Some(1));
    let place = lines.iter().position(|line| line.starts_with("… and ")).unwrap();
    assert_eq!(lines[place], "… and 400 more calls; --report html=FILE shows all", "{lines:?}");
    let rows = lines[1..place].iter().filter(|line| !line.starts_with("     ")).count();
    assert_eq!(rows, 100, "{lines:?}");
    // What the timeline does not show is in tables (KT-11).
    assert!(lines[place + 1].starts_with("tool") && lines[place + 1].contains("  ran p50  "), "{lines:?}");
    assert!(lines[place + 2].starts_with("echo     250 ") && lines[place + 3].starts_with("nothing  250 "));
    assert!(
        lines[place + 4].starts_with("slowest call  tool  ran ") && lines[place + 5].contains("  echo  ")
    );
    assert!(lines.iter().any(|line| line.contains(" calls/s; at once: ")), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("500 calls in ")), "{lines:?}");
}

/// KT-13: without a terminal there are 100 columns.
#[test]
fn a_timeline_without_a_terminal_has_100_columns() {
    let workspace = workspace("report-columns");
    let args = ["run", "--approve", "auto", "--workspace", workspace.to_str().unwrap()];
    let done = toolyard(&[&args[..], &["examples/responses/openai-chat.json"]].concat(), "");
    assert_eq!(done.code, Some(0), "{done:?}");
    let rows: Vec<&str> = done.stderr.lines().take_while(|line| !line.starts_with("8 calls")).collect();
    assert!(rows.len() >= 9 && rows.iter().all(|row| row.chars().count() <= 100), "{}", done.stderr);
    assert!(done.stderr.contains("for the end of run 1 [serial]"), "{}", done.stderr);
}

#[test]
fn every_event_is_in_the_file() {
    let file = dir("events").join("events.jsonl");
    let done = toolyard(&["run", "-q", "--events", file.to_str().unwrap()], &reads(3));
    assert_eq!(done.code, Some(0));
    let events = fs::read_to_string(file).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of_session = || events.iter().filter(|event| event["session"] == "run");
    let seq: Vec<u64> = of_session().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(seq, (1..=seq.len() as u64).collect::<Vec<_>>());
    let ended = of_session().filter(|event| event["event"] == "tool.completed");
    assert_eq!(ended.count(), 3);
}

/// Runs with events directed to a file that the program reads: it must refuse and leave the file unchanged.
fn kept(args: &[&str], stdin: Stdio, events: &Path, what: &str) {
    let before = fs::read(events).unwrap();
    let path = events.to_str().unwrap();
    let args = [&["run", "--report", "none", "--events", path], args].concat();
    let output = program(&args).stdin(stdin).output().unwrap();
    let line = format!("toolyard: --events {path} would write into {what}: name another file\n");
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(2), line));
    assert_eq!((output.stdout, fs::read(events).unwrap()), (Vec::new(), before));
}

#[test]
fn events_do_not_go_into_what_is_read() {
    let dir = dir("events-kept");
    let (input, config) = (dir.join("batch.json"), dir.join("toolyard.toml"));
    fs::write(&input, reads(3)).unwrap();
    fs::write(&config, "[pools]\nread = 3\n").unwrap();
    let (batch, settings) = (input.to_str().unwrap(), config.to_str().unwrap());
    kept(&[batch], Stdio::null(), &input, "the input");
    kept(&[batch, "--from", "episodes"], Stdio::null(), &input, "the input");
    kept(&[batch, "--config", settings], Stdio::null(), &config, "the configuration");
    kept(&[batch], Stdio::null(), &dir.join("..").join("events-kept/batch.json"), "the input");
    if cfg!(unix) {
        let linked = dir.join("linked.json");
        fs::hard_link(&input, &linked).unwrap();
        kept(&[batch], Stdio::null(), &linked, "the input");
        kept(&[], fs::File::open(&input).unwrap().into(), &input, "the input");
    }
}

#[test]
fn an_input_that_cannot_be_read_costs_no_old_events() {
    let dir = dir("events-old");
    let (events, input) = (dir.join("events.jsonl"), dir.join("none.json"));
    fs::write(&events, "old\n").unwrap();
    let (events_path, input_path) = (events.to_str().unwrap(), input.to_str().unwrap());
    let done = toolyard(&["run", input_path, "--events", events_path], "");
    assert_eq!((done.code, fs::read_to_string(&events).unwrap().as_str()), (Some(3), "old\n"));
    let done = toolyard(&["run", input_path, "--events", input_path], "");
    assert_eq!((done.code, input.exists()), (Some(3), false));
}

#[test]
fn one_round_is_one_round() {
    let done = toolyard(&["bench", "--calls", "1", "--rounds", "1", "--only", "floor"], "");
    let first = done.stdout.lines().next().unwrap_or_default();
    assert!(first.ends_with(" build, 1 round"), "{done:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn events_that_cannot_be_written_cost_no_result() {
    let done = toolyard(&["run", "--report", "none", "--events", "/dev/full"], &reads(3));
    assert_eq!((done.code, done.json()["results"].as_array().unwrap().len()), (Some(2), 3));
    assert_eq!(
        done.stderr,
        "toolyard: cannot write events to /dev/full: No space left on device (os error 28)\n"
    );
}
