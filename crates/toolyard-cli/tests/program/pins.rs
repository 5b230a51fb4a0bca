//! A pinned tool that is another all at once, and how a person approves it.

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

/// What came of the two calls, in a word each.
fn came(done: &Done) -> [String; 2] {
    let results = done.json()["results"].clone();
    [0, 1].map(|n| {
        let result = &results[n];
        result["error"]["code"].as_str().or(result["status"].as_str()).unwrap().to_owned()
    })
}

/// The tool is there, and says no of its own; the other one is, too.
const THERE: [&str; 2] = ["execution_error", "ok"];

/// The tool is not there, the other one is.
const GONE: [&str; 2] = ["not_found", "ok"];

/// The first and the last words of what is said of a tool that has changed.
const CHANGED: [&str; 2] =
    ["its definition has changed: look at it, take '", " to approve it, and start the server anew"];

/// The line and the file of which it is said that the one be taken out of the other.
fn advice(said: &str) -> Option<(&str, &str)> {
    let (said, _) = said.split_once(CHANGED[0])?.1.split_once(CHANGED[1])?;
    said.split_once("' out of ")
}

/// A tool that is not what it was when it was approved is gone, and its server's other tools are not; the error says
/// what to do, and done so it is there again, until it changes once more, be it to what it was before.
#[test]
fn a_tool_that_changes_is_gone_until_it_is_approved_again() {
    let inn = Inn::open("pinned", "pin = \"mcp.lock\"");
    let lock = inn.path("mcp.lock");
    assert_eq!(came(&run(&inn)), THERE);
    let first = fs::read_to_string(&lock).unwrap();

    inn.says("books a room, and tells your boss");
    for _ in 0..2 {
        let done = run(&inn);
        assert_eq!((came(&done), done.code), (GONE.map(str::to_owned), Some(1)), "{done:?}");
        let told = format!(
            "a tool of an MCP server is not taken server=\"inn\" tool=\"inn__book\" why=\"{}",
            CHANGED[0]
        );
        assert!(done.stderr.contains(&told) && advice(&done.stderr).is_some(), "{}", done.stderr);
    }
    let done = toolyard(&["tools", "--config", &inn.config()], "");
    assert!(!done.stdout.lines().any(|line| line.starts_with("inn__book")), "{}", done.stdout);
    assert!(done.stdout.contains("warning: mcp 'inn': the tool 'inn__book' is not taken: its definition"));
    let (line, file) = advice(&done.stdout).unwrap();
    assert_eq!((line, fs::canonicalize(file).unwrap()), ("inn book", lock.canonicalize().unwrap()));
    assert_eq!(fs::read_to_string(&lock).unwrap(), first, "nobody has approved it");

    let kept: String = first.split_inclusive('\n').filter(|pin| !pin.trim_end().ends_with(line)).collect();
    assert_eq!((first.lines().count(), kept.lines().count()), (3, 2));
    fs::write(&lock, &kept).unwrap();
    for _ in 0..2 {
        let done = run(&inn);
        assert_eq!((came(&done), advice(&done.stderr)), (THERE.map(str::to_owned), None));
    }
    let now = fs::read_to_string(&lock).unwrap();
    assert!(now.ends_with(&kept) && now != first, "{now}");
    inn.says("books a room");
    assert_eq!(came(&run(&inn)), GONE);
}
