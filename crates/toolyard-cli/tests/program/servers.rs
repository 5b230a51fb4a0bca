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

/// A server in a line of shell, whose one tool says no with a picture, a sound and data.
const NO: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case $line in
    *'"initialize"'*) say '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
    *'"tools/list"'*) say '"result":{"tools":[{"name":"book","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
    *'"tools/call"'*) say '"result":{"content":[{"type":"text","text":"no such room"},{"type":"audio","data":"UklGRg==","mimeType":"audio/wav"}],"structuredContent":{"free":["17"]},"isError":true}' ;;
    *'"id"'*) say '"error":{"code":-32601,"message":"no such method"}' ;;
  esac
done
"#;

/// V5: what a tool puts out that says no stands in the report whole.
#[test]
fn the_report_has_all_that_a_server_says_with_its_no() {
    let dir = dir("says_no");
    let (file, script) = (dir.join("toolyard.toml"), dir.join("no.sh"));
    fs::write(&script, NO).unwrap();
    let server = format!("[mcp.inn]\ncommand = \"sh\"\nargs = [{script:?}]\ntrust = true\n");
    fs::write(&file, server).unwrap();
    let call = r#"{"calls":[{"call_id":"a","name":"inn__book","arguments":{}}]}"#;
    let done = toolyard(&["run", "--report", "none", "--config", file.to_str().unwrap()], call);
    let result = done.json()["results"][0].clone();
    assert_eq!(result["status"], "error", "{}", done.stderr);
    assert_eq!(result["content"][0]["text"], "no such room\n[audio audio/wav]");
    let error = &result["error"];
    assert_eq!((&error["code"], &error["message"]), (&"execution_error".into(), &"no such room".into()));
    assert_eq!(error["content"].as_array().map(Vec::len), Some(2));
    assert_eq!(error["structured"]["free"][0], "17");
    assert_eq!(error["metadata"]["mcp.content"][0]["part"]["data"], "UklGRg==");
}
