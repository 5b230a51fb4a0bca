//! How MCP servers that cannot be used are reported. The tests of worlds cover servers that work.
#![cfg(unix)]

use crate::{
    child::{Done, fed, program, toolyard},
    inn::Inn,
    place::dir,
};
use std::{
    fs,
    io::{BufRead, BufReader},
};

const CALL: &str = r#"{"calls":[{"call_id":"a","name":"echo","arguments":{"text":"x"}}]}"#;

/// Runs a command with a server that prints why it cannot start, and exits.
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
        // Whether writing to it or reading from it fails first is a matter of chance.
        let (begin, end) = (
            "toolyard: the MCP server 'lame' cannot be used: it closed its ",
            "(exit status: 3; its last line on stderr: no licence)\n",
        );
        assert!(done.stderr.starts_with(begin) && done.stderr.ends_with(end), "{}", done.stderr);
        assert_eq!(done.stderr.lines().count(), 1);
    }
}

#[test]
fn a_server_that_is_not_required_is_reported_and_left_out() {
    let more = "required = false\n[tools.lame__x]\nside_effects = \"read\"";
    let done = with_a_broken_server("not_required", more, RUN);
    assert_eq!((done.code, done.json()["results"][0]["status"].as_str()), (Some(0), Some("ok")));
    assert!(done.stderr.contains("cannot use an MCP server that is not required"), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    let done = with_a_broken_server("not_required", more, &["tools"]);
    assert!(done.stdout.contains("warning: mcp 'lame' is not available: "), "{}", done.stdout);
}

const BOOK: &str = r#"{"calls":[{"call_id":"a","name":"inn__book","arguments":{}}]}"#;

/// V5: the complete output of a failing tool is in the results.
#[test]
fn the_report_has_the_whole_error_of_a_server() {
    let inn = Inn::open("says_no", "");
    let done = toolyard(&["run", "--report", "none", "--config", &inn.config()], BOOK);
    let result = done.json()["results"][0].clone();
    assert_eq!(result["status"], "error", "{}", done.stderr);
    assert_eq!(result["content"][0]["text"], "no such room\n[audio audio/wav]");
    let error = &result["error"];
    assert_eq!((&error["code"], &error["message"]), (&"execution_error".into(), &"no such room".into()));
    assert_eq!(error["content"].as_array().map(Vec::len), Some(2));
    assert_eq!(error["structured"]["free"][0], "17");
    assert_eq!(error["metadata"]["mcp.content"][0]["part"]["data"], "UklGRg==");
}

/// I15: a server's standard error is logged on request, under the server's name and without secrets.
#[test]
fn what_a_server_mutters_is_logged_on_request() {
    let inn = Inn::open("mutters", "");
    let run = |filter: &str| {
        let mut command = program(&["run", "--report", "none", "--config", &inn.config()]);
        command.env("TOOLYARD_LOG", filter);
        let done = fed(command, BOOK);
        assert_eq!(done.json()["results"][0]["content"][0]["text"], "no such room\n[audio audio/wav]");
        done.stderr
    };
    let line = r#"an MCP server wrote to stderr server="inn" line="all rooms are taken, says postgres://ada:[redacted: url password]@db""#;
    let log = run("toolyard_mcp=info");
    let lines = log.lines().filter(|logged| logged.contains("INFO") && logged.ends_with(line));
    assert_eq!(lines.count(), 1, "{log}");
    let unasked = run("");
    assert!(!unasked.contains("taken"), "{unasked}");
}

/// A prefix may be empty if no name occurs twice. If one does, the program says what to do, and runs once that is done.
#[test]
fn names_without_a_prefix_must_not_clash() {
    let inn = Inn::open("no_prefix", "prefix = \"\"");
    let run = || {
        toolyard(&["run", "--report", "none", "--config", &inn.config()], &BOOK.replace("inn__book", "book"))
    };
    let done = run();
    let expected = "toolyard: the MCP server 'inn' has a tool 'echo', and so does this program: give [mcp.inn] a prefix, or \
                remove 'echo' from [builtin] enable\n";
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(2), "", expected));
    fs::write(inn.path("toolyard.toml"), format!("[builtin]\nenable = []\n{}", inn.section())).unwrap();
    assert_eq!(run().json()["results"][0]["error"]["message"], "no such room");
}

/// A public address is served only with a token; the program says so before it serves anybody.
#[test]
fn a_public_address_is_not_served_without_a_token() {
    let mut command = program(&["mcp", "--http", "0.0.0.0:0"]);
    let mut child = command.env_remove("TOOLYARD_MCP_TOKEN").spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    // A program that serves would print that, and would not end.
    child.kill().unwrap();
    child.wait().unwrap();
    let expected =
        "toolyard: --http 0.0.0.0:0: 0.0.0.0:0 is not a loopback address: a bearer token is required\n";
    assert_eq!(line, expected);
}
