//! MCP servers that cannot be used, as a person is told of them. What those do that can is told by the tests of worlds.
#![cfg(unix)]

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use std::fs;

const CALL: &str = r#"{"calls":[{"call_id":"a","name":"echo","arguments":{"text":"x"}}]}"#;

/// Runs a command with a server that says why it cannot be, and ends.
fn with_a_broken_server(name: &str, more: &str, command: &[&str]) -> Done {
    let file = dir(name).join("toolyard.toml");
    let server = "command = \"sh\"\nargs = [\"-c\", \"echo no licence >&2; exit 3\"]";
    fs::write(&file, format!("[mcp.lame]\n{server}\n{more}\n")).unwrap();
    let args: Vec<&str> = command.iter().copied().chain(["--config", file.to_str().unwrap()]).collect();
    toolyard(&args, CALL)
}

const RUN: &[&str] = &["run", "--report", "none"];

#[test]
fn a_server_that_is_required_keeps_the_program_from_its_work() {
    for command in [RUN, &["plan"], &["tools"], &["check"]] {
        let done = with_a_broken_server("required", "", command);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{command:?}");
        // Whether it is missed when it is spoken to or when it is listened to is a matter of chance.
        let (begin, end) = (
            "toolyard: the MCP server 'lame' cannot be used: it closed its ",
            "(exit status: 3; it last said: no licence)\n",
        );
        assert!(done.stderr.starts_with(begin) && done.stderr.ends_with(end), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1);
    }
}

#[test]
fn one_that_is_not_required_is_told_of_and_left_out() {
    let more = "required = false\n[tools.lame__x]\nside_effects = \"read\"";
    let done = with_a_broken_server("not_required", more, RUN);
    assert_eq!((done.code, done.json()["results"][0]["status"].as_str()), (Some(0), Some("ok")));
    assert!(done.stderr.contains("an MCP server cannot be used, and is not required"), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    let done = with_a_broken_server("not_required", more, &["tools"]);
    assert!(done.stdout.contains("warning: mcp 'lame' is not there"), "{}", done.stdout);
}
