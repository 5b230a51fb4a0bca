//! What is configured for calls in general, and limits of agents (AG-5, AG-8).

use crate::{
    child::fed,
    missing::skip,
    yard::{Yard, call, is_missing},
};
use serde_json::json;

fn echo() -> String {
    call("Echo", &json!({"text": "x"}))
}

/// AG-5: the profile is the approval; `[confirmation]` may be stricter, and where nobody can be asked the answer is no.
#[test]
fn a_confirmation_may_be_stricter_than_the_profile() {
    if is_missing() {
        return;
    }
    for (mode, error) in [("deny", "permission_denied"), ("prompt", "permission_denied")] {
        let more = format!("[confirmation.per_tool]\nEcho = \"{mode}\"\n");
        let yard = Yard::of("agents-confirmation", &echo(), &["Echo"], &more);
        assert_eq!(yard.answer()["error"], error, "{mode}");
        assert_eq!(yard.audit()[0]["event"], "tool.call.denied");
    }
    let yard =
        Yard::of("agents-confirmation", &echo(), &["Echo"], "[confirmation.per_tool]\nEcho = \"auto\"\n");
    assert_eq!(yard.answer()["ok"], true);
}

/// AG-5, AG-10: a budget of a tree holds for all agents together.
#[test]
fn a_budget_holds_for_agents() {
    if is_missing() {
        return;
    }
    let echo = |id: &str| {
        json!({"op": "tool_call", "tool_call_id": id, "tool": "Echo", "args": {"text": "x"}}).to_string()
    };
    let calls = format!("tool_calls={}", [echo("1"), echo("2"), echo("3")].join("\n"));
    let yard = Yard::of("agents-budget", &calls, &["Echo"], "[budget]\ntree = 2\n");
    let answer = yard.answer();
    let ok = answer.as_array().unwrap().iter().filter(|answer| answer["ok"] == true).count();
    assert_eq!(ok, 2, "{answer}");
    let refused = answer.as_array().unwrap().iter().find(|answer| answer["ok"] == false).unwrap();
    assert_eq!(refused["error"], "permission_denied", "{answer}");
}

/// AG-8: an agent that runs into its limit of memory is told as that. It needs a group that keeps such a limit.
#[test]
fn a_limit_of_memory_is_told() {
    if is_missing() {
        return;
    }
    let Ok(group) = std::env::var("TOOLYARD_CGROUP") else {
        return skip("TOOLYARD_CGROUP names no delegated group");
    };
    let more = format!("limits = {{ memory = \"64MiB\" }}\n[sandbox.process]\ncgroup = {}\n", json!(group));
    let script = "hog=$(head -c 200m /dev/zero | tr '\\\\0' x); say '{\"op\":\"bye\"}'";
    let yard = Yard::scripted("agents-memory", script, &[], &more);
    let done = yard.run();
    match done.stderr.contains("cannot limit memory") {
        true => eprintln!("skipped: {}", done.stderr),
        false => assert_eq!(done.json()["agents"][0]["end"], "limit(memory)", "{done:?}"),
    }
}

/// AG-2: an input that is too long for a variable is in the welcome alone.
#[test]
fn a_long_input_is_in_the_welcome() {
    if is_missing() {
        return;
    }
    let script = r#"
        say '{"op":"hello","protocol":1}'; hear
        say "{\"op\":\"bye\",\"result\":[${#TOOLYARD_INPUT},${#heard}]}"
    "#;
    let lengths = |bytes: usize| {
        let more = format!("input = {{ text = \"{}\" }}", "x".repeat(bytes));
        let result = Yard::scripted("agents-input", script, &[], &more).report()["result"].clone();
        let at = |n: usize| usize::try_from(result[n].as_u64().unwrap()).unwrap();
        (at(0), at(1))
    };
    let (variable, welcome) = lengths(60 << 10);
    assert!(variable > 60 << 10 && welcome > variable);
    let (variable, welcome) = lengths(70 << 10);
    assert!(variable == 0 && welcome > 70 << 10);
}

/// AG-13: the supervisor may open as many files as it may at all; its agents have the limit that it was started with.
#[test]
fn the_supervisor_opens_many_files_and_its_agents_do_not() {
    if is_missing() {
        return;
    }
    let script = r#"
        above() { read -r _ _ _ above _ </proc/$1/stat; }
        above $PPID
        say "{\"op\":\"bye\",\"result\":[$(ulimit -Sn),$(awk '/open files/ {print ($4 == $5)}' /proc/$above/limits)]}"
    "#;
    let yard = Yard::scripted("agents-files", script, &[], "sandbox = \"host\"");
    let mut command = std::process::Command::new("/bin/bash");
    let program = yard.command();
    command
        .args(["-c", "ulimit -Sn 300; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    command.current_dir(&yard.dir).stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let done = fed(command, "");
    assert_eq!(done.json()["agents"][0]["result"], json!([300, 1]), "{done:?}");
}
