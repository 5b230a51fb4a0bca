//! Traces in Chrome's trace event format.

use crate::{child::toolyard, place::dir, workspace::workspace};
use serde_json::{Value, json};
use std::{collections::HashMap, fs, path::Path};

fn trace(file: &Path) -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn slices<'a>(trace: &'a [Value], category: &str) -> Vec<&'a Value> {
    trace.iter().filter(|item| item["ph"] == "X" && item["cat"] == category).collect()
}

/// When a slice begins and ends.
fn stretch(slice: &Value) -> (u64, u64) {
    let from = slice["ts"].as_u64().unwrap();
    (from, from + slice["dur"].as_u64().unwrap())
}

#[test]
fn every_call_is_a_slice_with_its_attempts_and_waits_in_it() {
    let file = dir("trace").join("trace.json");
    let workspace = workspace("trace");
    let args = ["run", "examples/batch.json", "--approve", "auto", "--report", "none", "--trace"];
    let done = toolyard(
        &[&args[..], &[file.to_str().unwrap(), "--workspace", workspace.to_str().unwrap()]].concat(),
        "",
    );
    assert_eq!(done.code, Some(1), "{done:?}");
    let trace = trace(&file);
    let calls = slices(&trace, "call");
    assert_eq!((calls.len(), slices(&trace, "turn").len()), (8, 1));
    assert_eq!(slices(&trace, "attempt").len(), 7);
    assert!(slices(&trace, "wait").iter().any(|wait| wait["name"] == "earlier calls"));
    let lane = |item: &Value| (item["pid"].as_u64(), item["tid"].as_u64());
    for inner in slices(&trace, "attempt").into_iter().chain(slices(&trace, "wait")) {
        let (from, to) = stretch(inner);
        let holds =
            |call: &&&Value| lane(call) == lane(inner) && stretch(call).0 <= from && to <= stretch(call).1;
        assert_eq!(calls.iter().filter(holds).count(), 1, "{inner}");
    }
    let failed: Vec<&Value> =
        calls.iter().map(|call| &call["args"]["code"]).filter(|code| !code.is_null()).collect();
    assert_eq!(failed, [&json!("not_found")]);
    let names: Vec<&str> = trace
        .iter()
        .filter(|item| item["name"] == "process_name")
        .map(|item| item["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["run root"]);
}

/// KT-13: a viewer that knows a thread by its number alone shows each under its name: no two threads have the same one, none
/// has that of another process, and the first of a process has the process's.
#[test]
fn a_thread_has_a_number_of_its_own() {
    let file = dir("trace-threads").join("trace.json");
    let episode = |name: &str| {
        let call =
            |id: &str| json!({"call_id": id, "name": "read_file", "arguments": {"path": "plants.csv"}});
        json!({"id": name, "turns": [[call("a"), call("b"), call("c")]]}).to_string()
    };
    let episodes = ["one", "two", "three"].map(episode).join("\n");
    let args = ["run", "-q", "--from", "episodes", "--workspace", "examples/workspace", "--trace"];
    assert_eq!(toolyard(&[&args[..], &[file.to_str().unwrap()]].concat(), &episodes).code, Some(0));
    let trace = trace(&file);
    let mut threads = HashMap::<u64, u64>::new();
    for item in trace.iter().filter(|item| item["name"] == "thread_name") {
        let (pid, tid) = (item["pid"].as_u64().unwrap(), item["tid"].as_u64().unwrap());
        assert_eq!(threads.insert(tid, pid), None, "{item}");
        assert!(tid > 0 && (tid == pid) == (item["args"]["name"] == "turns"), "{item}");
    }
    let processes: std::collections::HashSet<_> = threads.values().collect();
    assert_eq!(processes.len(), 3);
    assert!(threads.iter().all(|(tid, pid)| tid == pid || !processes.contains(tid)), "{threads:?}");
}

#[test]
fn a_flow_leads_from_a_queued_call_to_its_attempt() {
    let file = dir("trace-flow").join("trace.json");
    let call =
        |index: usize| json!({"call_id": index, "name": "read_file", "arguments": {"path": "plants.csv"}});
    let batch = json!({"calls": (0..200).map(call).collect::<Vec<_>>()}).to_string();
    let args = [
        "run",
        "-q",
        "--max-in-flight",
        "1",
        "--workspace",
        "examples/workspace",
        "--trace",
        file.to_str().unwrap(),
    ];
    assert_eq!(toolyard(&args, &batch).code, Some(0));
    let trace = trace(&file);
    let mut flows = HashMap::<u64, Vec<&str>>::new();
    for item in trace.iter().filter(|item| item["cat"] == "flow") {
        flows.entry(item["id"].as_u64().unwrap()).or_default().push(item["ph"].as_str().unwrap());
    }
    assert!(flows.len() > 100, "{}", flows.len());
    assert!(flows.values().all(|phases| phases == &["s", "f"]), "{flows:?}");
}

/// A trace is a JSON document whatever ends the program.
#[cfg(unix)]
#[test]
fn a_trace_is_whole_after_an_interrupt() {
    let file = dir("trace-interrupted").join("trace.json");
    let config = dir("trace-interrupted").join("toolyard.toml");
    fs::write(&config, "[builtin]\nenable = [\"shell\"]\n").unwrap();
    let args = [
        "run",
        "-q",
        "--approve",
        "auto",
        "--config",
        config.to_str().unwrap(),
        "--trace",
        file.to_str().unwrap(),
    ];
    // The command interrupts the program itself, which is the parent of its helper or of the command.
    let kill = "kill -INT $TOOLYARD_TEST_PID; sleep 30";
    let mut child = crate::child::program(&args).spawn().unwrap();
    let kill = kill.replace("$TOOLYARD_TEST_PID", &child.id().to_string());
    let batch = json!({"calls": [{"call_id": "s", "name": "shell", "arguments": {"command": kill}}]});
    serde_json::to_writer(child.stdin.take().unwrap(), &batch).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let trace = trace(&file);
    assert_eq!(slices(&trace, "call")[0]["args"]["code"], "cancelled");
}
