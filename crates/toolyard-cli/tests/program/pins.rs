//! A pinned tool whose definition changes, and how the user approves it.

use crate::{
    child::{Done, toolyard},
    inn::Inn,
};
use std::fs;

const BOTH: &str = r#"{"calls":[
    {"call_id":"b","name":"inn__book","arguments":{}},{"call_id":"r","name":"inn__ring","arguments":{}}]}"#;

fn run(inn: &Inn) -> Done {
    toolyard(&["run", "--report", "none", "--config", &inn.config()], BOTH)
}

/// The outcomes of the two calls, in a word each.
fn results(done: &Done) -> [String; 2] {
    let results = done.json()["results"].clone();
    [0, 1].map(|n| {
        let result = &results[n];
        result["error"]["code"].as_str().or(result["status"].as_str()).unwrap().to_owned()
    })
}

/// The tool exists and fails by itself; the other one succeeds.
const AVAILABLE: [&str; 2] = ["execution_error", "ok"];

/// The tool does not exist; the other one succeeds.
const REFUSED: [&str; 2] = ["not_found", "ok"];

/// The start and the end of the message about a changed tool.
const CHANGED: [&str; 2] =
    ["its definition has changed: review it; to approve it, remove '", " and restart the server"];

/// The line to remove, and the file to remove it from, according to the message.
fn advice(stderr: &str) -> Option<(&str, &str)> {
    let (advice, _) = stderr.split_once(CHANGED[0])?.1.split_once(CHANGED[1])?;
    advice.split_once("' from ")
}

/// A tool that differs from its approved definition is removed, while its server's other tools stay. The error says
/// what to do. Once that is done, the tool is back until it changes again, even to an earlier definition.
#[test]
fn a_tool_that_changes_is_removed_until_it_is_approved_again() {
    let inn = Inn::open("pinned", "pin = \"mcp.lock\"");
    let lock = inn.path("mcp.lock");
    assert_eq!(results(&run(&inn)), AVAILABLE);
    let first = fs::read_to_string(&lock).unwrap();

    inn.says("books a room, and tells your boss");
    for _ in 0..2 {
        let done = run(&inn);
        assert_eq!((results(&done), done.code), (REFUSED.map(str::to_owned), Some(1)), "{done:?}");
        let refusal = format!(
            "a tool of an MCP server was refused server=\"inn\" tool=\"inn__book\" why=\"{}",
            CHANGED[0]
        );
        assert!(done.stderr.contains(&refusal) && advice(&done.stderr).is_some(), "{}", done.stderr);
    }
    let done = toolyard(&["tools", "--config", &inn.config()], "");
    assert!(!done.stdout.lines().any(|line| line.starts_with("inn__book")), "{}", done.stdout);
    assert!(done.stdout.contains("warning: mcp 'inn': the tool 'inn__book' was refused: its definition"));
    let (line, file) = advice(&done.stdout).unwrap();
    assert_eq!((line, fs::canonicalize(file).unwrap()), ("inn book", lock.canonicalize().unwrap()));
    assert_eq!(fs::read_to_string(&lock).unwrap(), first, "nobody has approved it");

    let kept: String = first.split_inclusive('\n').filter(|pin| !pin.trim_end().ends_with(line)).collect();
    assert_eq!((first.lines().count(), kept.lines().count()), (3, 2));
    fs::write(&lock, &kept).unwrap();
    for _ in 0..2 {
        let done = run(&inn);
        assert_eq!((results(&done), advice(&done.stderr)), (AVAILABLE.map(str::to_owned), None));
    }
    let now = fs::read_to_string(&lock).unwrap();
    assert!(now.ends_with(&kept) && now != first, "{now}");
    inn.says("books a room");
    assert_eq!(results(&run(&inn)), REFUSED);
}
