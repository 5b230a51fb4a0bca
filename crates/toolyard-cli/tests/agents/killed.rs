//! Agents that are killed, whatever they are doing (AG-8, AG-9): the end is told, and nothing of them is left.

use crate::{
    terminal::Terminal,
    yard::{Yard, is_missing, until_there},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;

/// A tool that notes that it runs, and then lasts.
const HANG: &str = r#"
[workspace]
root = "data"
[program.hang]
description = "Lasts"
command = ["/bin/sh", "./hang.sh"]
side_effects = "write"
input_schema = { type = "object" }
"#;

/// Asks until the tool runs.
const UNTIL_IT_RUNS: &str = r#"
    n=0
    until case $heard in *'"ok":true'*) true ;; *) false ;; esac; do
        n=$((n + 1))
        [ $n -lt 5000 ] || exit 9
        say "{\"op\":\"tool_call\",\"tool_call_id\":\"r$n\",\"tool\":\"Read\",\"args\":{\"path\":\"up\"},\"after\":[]}"
        hear
    done
"#;

fn hang(id: &str) -> String {
    format!("say '{{\"op\":\"tool_call\",\"tool_call_id\":\"{id}\",\"tool\":\"hang\",\"args\":{{}}}}'\n")
}

/// Runs an agent with that tool, and returns what is reported of it. Nothing that it started is left.
fn report(name: &str, script: &str) -> Value {
    let yard = yard(name, script, "");
    let report = yard.report();
    assert_eq!(processes(&yard), Vec::<u32>::new(), "{report}");
    report
}

fn yard(name: &str, script: &str, more: &str) -> Yard {
    let more = format!("fs = [\"rw:data\"]\n{HANG}{more}");
    let yard = Yard::scripted(name, script, &["hang", "Read", "Echo"], &more);
    let up = yard.dir.join("data/up");
    fs::write(yard.dir.join("hang.sh"), format!("touch {}; exec sleep 1000\n", up.display())).unwrap();
    yard
}

/// The processes that name this directory in their environment, or run in it.
fn processes(yard: &Yard) -> Vec<u32> {
    let place = yard.dir.to_str().unwrap();
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environ = fs::read(entry.path().join("environ")).ok()?;
        let is_here = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(place));
        (is_here || String::from_utf8_lossy(&environ).contains(place)).then_some(pid)
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.unwrap())).collect()
}

fn kill(pid: u32) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
}

/// AG-9: with a call that runs and one that waits for it; after its bye, with both in flight.
#[test]
fn an_agent_is_killed_with_calls() {
    if is_missing() {
        return;
    }
    let calls = format!("{}{}{UNTIL_IT_RUNS}", hang("1"), hang("2"));
    let with_calls = report("agents-killed-calls", &format!("{calls}\nkill -9 $$"));
    assert_eq!(with_calls["end"], "killed(9)");
    assert!(with_calls["calls"].as_u64().unwrap() >= 3, "{with_calls}");
    let in_bye =
        report("agents-killed-bye", &format!("{calls}\nsay '{{\"op\":\"bye\",\"result\":7}}'\nkill -9 $$"));
    assert_eq!((&in_bye["end"], &in_bye["result"]), (&"killed(9)".into(), &7.into()));
}

/// AG-8: when it was told to end.
#[test]
fn an_agent_is_killed_while_it_stops() {
    if is_missing() {
        return;
    }
    let script = format!(
        "{}{UNTIL_IT_RUNS}echo up >&2; until case $heard in *shutdown*) true ;; *) false ;; esac; do hear; done; kill -9 $$",
        hang("1")
    );
    let yard = yard("agents-killed-stopping", &script, "");
    let mut supervisor = yard.command().spawn().unwrap();
    until_there(&yard.dir.join("data/up"), &mut supervisor);
    let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = supervisor.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["agents"][0]["end"], "stopped");
    assert_eq!(processes(&yard), Vec::<u32>::new());
}

/// AG-8: while it is started. Whether its program had begun cannot be told from outside.
#[test]
fn an_agent_is_killed_while_it_starts() {
    if is_missing() {
        return;
    }
    let yard = yard("agents-killed-starting", "hear", "");
    let supervisor = yard.command().spawn().unwrap();
    let helper = loop {
        let tasks = fs::read_dir(format!("/proc/{}/task", supervisor.id())).unwrap();
        let children = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
        let first =
            children.flat_map(|all| all.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).next();
        if let Some(pid) = first {
            break pid.parse().unwrap();
        }
        std::thread::yield_now();
    };
    kill(helper);
    let output = supervisor.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let end = report["agents"][0]["end"].as_str().unwrap();
    assert!(["not_started", "stopped", "killed(9)"].contains(&end), "{report}");
}

/// AG-9, PO-4: while a user is asked about its call: the question is withdrawn, and nothing waits for an answer.
#[test]
fn an_agent_is_killed_while_its_call_is_being_approved() {
    if is_missing() {
        return;
    }
    let yard = yard(
        "agents-killed-asked",
        &format!("{}hear", hang("1")),
        "[confirmation.per_tool]\nhang = \"prompt\"\n",
    );
    let config = yard.dir.join("agents.toml");
    let args = ["supervise", config.to_str().unwrap(), "--report", "json", "--approve", "ask"];
    let mut terminal = Terminal::start(&args, "");
    terminal.question();
    processes(&yard).into_iter().for_each(kill);
    let done = terminal.end();
    let report = &done.json()["agents"][0];
    assert_eq!((&report["end"], &report["calls"]), (&"killed(9)".into(), &1.into()), "{done:?}");
    assert!(!yard.dir.join("data/up").exists());
}
