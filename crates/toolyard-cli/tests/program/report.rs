//! Reports and events.

use crate::{child::toolyard, place::dir};
use serde_json::{Value, json};
use std::fs;

fn reads(calls: usize) -> String {
    let call =
        |index: usize| json!({"call_id": format!("c{index}"), "name": "echo", "arguments": {"text": "x"}});
    json!({"calls": (0..calls).map(call).collect::<Vec<_>>()}).to_string()
}

#[test]
fn the_json_report_is_one_document() {
    let done = toolyard(
        &["run", "--report", "json", "examples/batch.json", "--workspace", "examples/workspace"],
        "",
    );
    let report: Value = serde_json::from_str(&done.stderr).unwrap();
    assert_eq!((done.code, &report["exit_code"]), (Some(1), &json!(1)));
    assert_eq!((&report["calls"], &report["runs"]), (&json!(8), &json!(5)));
    let timeline = report["timeline"].as_array().unwrap();
    assert_eq!(timeline.len(), 8);
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

#[test]
fn long_batches_have_a_short_timeline() {
    let done = toolyard(&["run"], &reads(500));
    assert_eq!((done.code, done.stderr.lines().count()), (Some(0), 103));
    assert!(done.stderr.contains("… and 400 more calls; --report json tells of all"));
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
