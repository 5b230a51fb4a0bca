//! How agents end (AG-8, AG-9, AG-11).

use crate::{
    child::fed,
    yard::{Yard, is_missing, until_there},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Child,
};

/// How an agent that behaves so ends, and the exit code.
fn end(behavior: &str, more: &str) -> (String, Option<i32>) {
    let done = Yard::of("agents-end", behavior, &["Echo"], more).run();
    (done.json()["agents"][0]["end"].as_str().unwrap().to_owned(), done.code)
}

/// AG-8: each end has its word, and the exit code says whether all ended well.
#[test]
fn each_end_has_its_word() {
    if is_missing() {
        return;
    }
    let check = |behavior: &str, more: &str, word: &str| {
        let code = if word == "ended" { 0 } else { 1 };
        assert_eq!(end(behavior, more), (word.to_owned(), Some(code)), "{behavior}");
    };
    check("echo", "", "ended");
    check("exit=0", "", "ended");
    check("exit=3", "", "failed(3)");
    check("crash", "", "killed(11)");
    check("loop", "limits = { wall_time = \"200ms\" }", "limit(wall time)");
}

/// A supervisor that runs, with agents that wait.
fn running(yard: &Yard) -> Child {
    yard.command().env("TOOLYARD_LOG", "info").spawn().unwrap()
}

/// The processes of this directory's agents, by what they wait in.
fn processes(yard: &Yard) -> Vec<u32> {
    let place = yard.dir.to_str().unwrap();
    let of = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let environ = fs::read(entry.path().join("environ")).ok()?;
        String::from_utf8_lossy(&environ).contains(place).then_some(pid)
    };
    fs::read_dir("/proc").unwrap().filter_map(|entry| of(entry.unwrap())).collect()
}

/// Waits until so many processes are there.
fn until(yard: &Yard, what: impl Fn(usize) -> bool) {
    while !what(processes(yard).len()) {
        std::thread::yield_now();
    }
}

fn yard_of_loops(name: &str) -> Yard {
    Yard::new(
        name,
        "[agents.a]\ncommand = AGENT\nenv = { CC_RUNNER_BEHAVIOR = \"loop\", PLACE = \"DIR\" }\ninstances = 3\n",
    )
}

/// AG-8, SB-7: when the supervisor is killed, every agent and all that it started ends.
#[test]
fn a_killed_supervisor_leaves_no_agent() {
    if is_missing() {
        return;
    }
    let yard = yard_of_loops("agents-killed");
    let mut supervisor = running(&yard);
    until(&yard, |count| count >= 6); // three shells, and what they wait in
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    until(&yard, |count| count == 0);
}

/// AG-8: an interrupt tells agents to end; those that do not are ended, and the report says so.
#[test]
fn an_interrupt_ends_all_agents() {
    if is_missing() {
        return;
    }
    let yard = yard_of_loops("agents-interrupted");
    let supervisor = running(&yard);
    until(&yard, |count| count >= 6);
    let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = supervisor.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ends: Vec<_> = report["agents"].as_array().unwrap().iter().map(|agent| &agent["end"]).collect();
    assert_eq!(ends, ["stopped"; 3]);
    until(&yard, |count| count == 0);
}

/// AG-8: an agent that is killed is told as that, and another one goes on and notices nothing (AG-9).
#[test]
fn a_killed_agent_is_told() {
    if is_missing() {
        return;
    }
    let yard = Yard::new(
        "agents-one-killed",
        "[agents.a]\ncommand = AGENT\nenv = { CC_RUNNER_BEHAVIOR = \"loop\", PLACE = \"DIR\" }\n\
         [agents.b]\ncommand = [\"/bin/bash\", \"-c\", \"echo up >&2; while :; do sleep 1000; done\"]\n",
    );
    let mut supervisor = running(&yard);
    until(&yard, |count| count >= 2);
    let mut log = BufReader::new(supervisor.stderr.take().unwrap()).lines();
    assert!(log.any(|line| line.unwrap().contains("line=\"up\"")));
    for pid in processes(&yard) {
        let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
    }
    assert!(log.any(|line| line.unwrap().contains("agent=\"root/a\" end=\"killed(9)\"")));
    let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    drop(log);
    let output = supervisor.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let end = |name: &str| {
        let agents = report["agents"].as_array().unwrap();
        agents.iter().find(|agent| agent["agent"] == name).unwrap_or_else(|| panic!("{report}"))["end"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(end("root/a"), "killed(9)");
    assert_eq!(end("root/b"), "stopped");
}

/// AG-11: an agent has no network, no files but those it is given, and its own in /tmp.
#[test]
fn an_agent_can_only_ask() {
    if is_missing() {
        return;
    }
    let yard = Yard::new(
        "agents-confined",
        "[agents.a]\ncommand = [\"/bin/bash\", \"probe.sh\"]\nread = [\"data\"]\n",
    );
    fs::write(yard.dir.join("secret"), "s").unwrap();
    let probe = r#"
        said=
        can() { if eval "$1" 2>/dev/null; then said="$said $2"; fi; }
        can 'cat secret' secret
        can 'cat data/a.txt >/dev/null' data
        can 'echo x >data/b.txt' write
        can 'cat /etc/shadow' shadow
        can 'echo x >/dev/tcp/127.0.0.1/80' network
        can 'echo x >/tmp/own && cat /tmp/own >/dev/null' own
        can 'test -n "$HOME" && test -d "$HOME"' home
        can 'test -n "$API_KEY"' environment
        printf '{"op":"bye","result":"%s"}\n' "$said"
    "#;
    fs::write(yard.dir.join("probe.sh"), probe).unwrap();
    let mut command = yard.command();
    command.env("API_KEY", "x");
    let report = fed(command, "").json();
    assert_eq!(report["agents"][0]["result"], " data own home", "{report}");
}

/// AG-4, AG-8: what cannot be started is told with its reason.
#[test]
fn what_cannot_be_started_is_told() {
    if is_missing() {
        return;
    }
    let done = Yard::new("agents-none", "[agents.a]\ncommand = [\"/no/such/program\"]\n").run();
    assert_eq!(done.code, Some(2));
    assert!(
        done.stderr.contains("agent 'a': it could not be started: '/no/such/program': No such file"),
        "{done:?}"
    );
    let report = Yard::new("agents-none", "[agents.a]\ncommand = [\"no-such-program\"]\n").report();
    assert_eq!((&report["end"], &report["calls"]), (&"not_started".into(), &0.into()));
    assert!(report["why"].as_str().unwrap().contains("No such file"), "{report}");
    // By a socket on descriptor 3, too, although a shell starts it.
    for program in ["no-such-program", "../agents-none-fd3/none"] {
        let config = format!("[agents.a]\ncommand = [\"{program}\"]\nchannel = \"fd3\"\n");
        let done = Yard::new("agents-none-fd3", &config).run();
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(told.contains("No such file") && !told.contains("failed(127)"), "{done:?}");
    }
}

/// AG-8: the report is there also when the events could not be written, and that is told.
#[test]
fn a_report_does_not_need_the_events() {
    if is_missing() {
        return;
    }
    let yard = Yard::of("agents-full", "exit=0", &["Echo"], "");
    let mut command =
        crate::child::program(&["supervise", "agents.toml", "--report", "json", "--events", "/dev/full"]);
    command.current_dir(&yard.dir);
    let done = fed(command, "");
    assert_eq!(done.json()["agents"].as_array().map(Vec::len), Some(1), "{done:?}");
    assert!(done.code != Some(0) && done.stderr.contains("/dev/full"), "{done:?}");
}

/// AG-8, SC-6: a call that takes its whole grace to be cancelled is answered within the grace of its agent.
#[test]
fn a_cancelled_call_is_heard_before_the_grace_is_over() {
    if is_missing() {
        return;
    }
    let script = r#"
        say '{"op":"tool_call","tool_call_id":"deaf","tool":"deaf","args":{}}'
        all=
        while hear; do all="$all${all:+,}$heard"; done
        say "{\"op\":\"bye\",\"result\":[$all]}"
    "#;
    let tool = "fs = [\"rw:data\"]\n[workspace]\nroot = \"data\"\n[program.deaf]\ndescription = \"Lasts\"\ncommand = [\"/bin/sh\", \"./deaf.sh\"]\nside_effects = \"write\"\n\
                input_schema = { type = \"object\" }\n";
    let yard = Yard::scripted("agents-grace", script, &["deaf"], tool);
    let up = yard.dir.join("data/up");
    let deaf = format!("trap '' TERM; touch {}; while :; do sleep 1; done\n", up.display());
    fs::write(yard.dir.join("deaf.sh"), deaf).unwrap();
    let mut supervisor = running(&yard);
    until_there(&up, &mut supervisor);
    let pid = Pid::from_raw(i32::try_from(supervisor.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = supervisor.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let agent = &report["agents"][0];
    assert_eq!((&agent["end"], &agent["result"][0]["op"]), (&"ended".into(), &"shutdown".into()), "{report}");
    assert_eq!(agent["result"][1]["tool_call_id"], "deaf", "{report}");
}
