//! Hostile command lines: other tools treat them as text, and a refused shell runs none of them.

use super::{census::marked, supervised, yard_with};
use serde_json::{Value, json};
use std::fs;
use toolyard::{Call, Caller, Denied, ErrorKind, Grant, RuntimePolicy, ToolSpec};
use toolyard_tests::data_file;
use toolyard_tools::shell::Shell;

/// A policy that denies the shell.
struct NoShell;

impl RuntimePolicy for NoShell {
    fn check(&self, tool: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        if tool.name == "shell" { Err(Denied::Disabled) } else { Ok(Grant::host()) }
    }
}

/// The command lines in the hostile data.
fn payloads() -> Vec<String> {
    let Some(file) = data_file("hostile-paths/payloads.jsonl") else { return Vec::new() };
    let text = fs::read_to_string(file).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let commands = lines.filter(|line| line["kind"] == "command");
    commands.map(|line| line["payload"].as_str().unwrap().to_owned()).collect()
}

/// The children of this thread that have not been reaped. The whole engine runs on this thread.
fn children() -> String {
    fs::read_to_string("/proc/thread-self/children").unwrap_or_default()
}

/// A tool argument reaches the tool byte for byte and starts no process.
#[tokio::test]
async fn other_tools_treat_a_command_line_as_text() {
    let yard = yard_with(Shell::new(supervised()), |builder| {
        builder.tools(toolyard_tools::builtin("echo").into_iter().collect::<Vec<_>>())
    })
    .await;
    let payloads = payloads();
    let echo =
        |(number, text): (usize, &String)| Call::new(format!("c{number}"), "echo", json!({ "text": text }));
    let calls: Vec<Call> = payloads.iter().enumerate().map(echo).collect();
    let outcomes = yard.engine.session("s").dispatch(calls).await;
    for (outcome, payload) in outcomes.iter().zip(&payloads) {
        assert_eq!(outcome.status.as_ref().unwrap().to_text(), *payload);
    }
    assert_eq!(children(), "", "of {} command lines", payloads.len());
}

/// PO-1: a refused shell runs no command: no attempt, no process.
#[tokio::test]
async fn a_refused_shell_runs_no_command() {
    let yard = yard_with(Shell::new(supervised()), |builder| builder.policy(NoShell)).await;
    let payloads = payloads();
    let call = |(number, command): (usize, &String)| {
        Call::new(format!("c{number}"), "shell", json!({ "command": command }))
    };
    let calls: Vec<Call> = payloads.iter().filter(|text| !text.is_empty()).enumerate().map(call).collect();
    let outcomes = yard.engine.session("s").dispatch(calls).await;
    for outcome in &outcomes {
        let error = outcome.error().unwrap();
        assert_eq!(error.message, "Permission denied: tool 'shell' is disabled by policy");
        assert_eq!((error.kind, outcome.attempts), (ErrorKind::PermissionDenied, 0));
    }
    let events = yard.events.events();
    assert!(events.iter().all(|event| !matches!(event.kind.name(), "dispatch.attempt" | "tool.called")));
    assert_eq!((children(), marked(&yard.mark())), (String::new(), Vec::new()));
    yard.events.check();
}
