//! The tool `shell`: it exists if it is enabled, and its processes end with the program.
#![cfg(target_os = "linux")]

use crate::{
    child::{program, toolyard},
    named_pipe::NamedPipe,
    place::dir,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command},
};

/// A workspace whose configuration enables the shell, and the options for it.
fn yard(name: &str) -> (PathBuf, Vec<String>) {
    let dir = dir(name).canonicalize().unwrap();
    let file = dir.join("toolyard.toml");
    let config = "[workspace]\nroot = \".\"\n[builtin]\nenable = [\"shell\"]\n[shell]\nenv = [\"PATH\"]\n";
    fs::write(&file, config).unwrap();
    let args = ["run", "--report", "none", "--approve", "auto", "--config", file.to_str().unwrap()];
    (dir, args.map(str::to_owned).to_vec())
}

fn calls(command: &str) -> String {
    json!({"calls": [{"call_id": "a", "name": "shell", "arguments": {"command": command}}]}).to_string()
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// The number of processes that work in this directory. The program itself works elsewhere.
fn working_in(dir: &Path) -> usize {
    let pids = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    pids.filter(|pid| fs::read_link(pid.join("cwd")).is_ok_and(|cwd| cwd == dir)).count()
}

#[test]
fn a_command_runs_where_it_is_enabled_and_nowhere_else() {
    let (dir, args) = yard("shell-runs");
    let done = toolyard(&strs(&args), &calls("pwd; env; (setsid sleep 60 &)"));
    let result = &done.json()["results"][0];
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{}\n", dir.display())), "{text}");
    assert!(text.contains("PATH=") && !text.contains("CARGO"), "{text}");
    assert!(text.ends_with("[background processes were left and have been terminated]"), "{text}");
    assert_eq!(working_in(&dir), 0);

    let done = toolyard(&["run", "--report", "none", "--approve", "auto"], &calls("echo x"));
    assert_eq!(done.json()["results"][0]["error"]["code"], "not_found");
}

/// PO-1: a command does not run unless it is allowed.
#[test]
fn a_command_is_refused_unless_it_is_allowed() {
    let (dir, args) = yard("shell-unasked");
    let args: Vec<&str> =
        strs(&args).into_iter().filter(|arg| !matches!(*arg, "--approve" | "auto")).collect();
    let done = toolyard(&args, &calls("echo x > ran"));
    assert_eq!(done.json()["results"][0]["error"]["code"], "user_denied");
    assert!(!dir.join("ran").exists());
}

/// Starts a command that resists ending, waits until it runs, and signals the program. All processes of the command
/// hold the pipe.
fn signalled(dir: &Path, args: &[String], signal: &str) -> (Child, NamedPipe) {
    let held = NamedPipe::make(&dir.join("held"));
    let mut child = program(&strs(args)).spawn().unwrap();
    let command = "exec 9> held; (setsid sleep 60 &); echo begun; trap '' TERM; echo ready >&9; while :; do sleep 1; done";
    child.stdin.take().unwrap().write_all(calls(command).as_bytes()).unwrap();
    held.until("ready");
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    (child, held)
}

/// SC-5, SC-8: an interrupt ends the command; its output so far is in the result.
#[test]
fn an_interrupt_ends_a_command_and_keeps_what_came_out() {
    let (dir, args) = yard("shell-interrupt");
    let (child, held) = signalled(&dir, &args, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = &results["results"][0]["error"];
    assert_eq!(error["code"], "cancelled");
    assert!(results["results"][0]["content"][0]["text"].as_str().unwrap().contains("begun"), "{results}");
    held.end();
}

/// SC-6: a program that is killed leaves no process of a command.
#[test]
fn a_killed_program_leaves_no_process() {
    let (dir, args) = yard("shell-killed");
    let (mut child, held) = signalled(&dir, &args, "-KILL");
    child.wait().unwrap();
    held.end();
}
