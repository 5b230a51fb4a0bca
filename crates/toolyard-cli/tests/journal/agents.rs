//! `toolyard supervise --journal`: an agent that is started again is answered what it was answered before (CL-8, JR-8).

use crate::{child::program, yard::Yard};
use serde_json::Value;
use std::{fs, process::Command};
#[cfg(target_os = "linux")]
use {
    crate::altered::{LosesStarts, started_since},
    serde_json::json,
    toolyard::{Call, Confirmations, Drain, Engine, ForkPolicy, ToolContext, ToolSpec, tool_fn},
    toolyard_journal::{Durability, Journal, Settings},
};

/// An agent that notes three lines one after another, and ends with the answers; it may start another one first.
const AGENT: &str = r#"
say() { printf '%s\n' "$1"; }; hear() { IFS= read -r heard; }
all=
note() {
    say "{\"op\":\"tool_call\",\"tool_call_id\":\"$1\",\"tool\":\"note\",\"args\":{\"text\":\"$TOOLYARD_AGENT $1\"}}"
    hear
    all="$all${all:+,}$heard"
}
if [ -n "$CHILD" ]; then
    say "{\"op\":\"tool_call\",\"tool_call_id\":\"child\",\"tool\":\"Agent\",\"args\":{\"profile\":\"b\",\"name\":\"$CHILD\"}}"
    hear
    all=$heard
fi
for id in 1 2 3; do note $id; done
say "{\"op\":\"bye\",\"result\":[$all]}"
"#;

fn yard(child: Option<&str>) -> Yard {
    let yard = Yard::new();
    let agents = format!(
        "[agents.a]\ncommand = [\"/bin/sh\", \"-c\", {agent}]\nsandbox = \"host\"\ntools = [\"note\", \"Agent\"]\n\
         may_spawn = [\"b\"]\nenv = {{ CHILD = {child:?} }}\n\
         [agents.b]\ninstances = 0\ncommand = [\"/bin/sh\", \"-c\", {agent}]\nsandbox = \"host\"\ntools = [\"note\"]\n",
        agent = serde_json::json!(AGENT),
        child = child.unwrap_or_default(),
    );
    let config = fs::read_to_string(yard.file("toolyard.toml")).unwrap();
    fs::write(yard.file("toolyard.toml"), config + &agents).unwrap();
    yard
}

fn supervise(yard: &Yard, session: &str) -> Command {
    let mut command = program(&["supervise"]);
    command.arg(yard.file("toolyard.toml")).arg("--workspace").arg(yard.file("work"));
    command.arg("--journal").arg(yard.file("agent.journal"));
    command.args(["--session", session, "--report", "json"]);
    command
}

/// For each answer of the agent `a` whether it says that nobody knows what the call has done; it is no other error.
fn answers(yard: &Yard, session: &str) -> Vec<bool> {
    let done = crate::child::fed(supervise(yard, session), "");
    let report = done.json();
    let agents = report["agents"].as_array().unwrap();
    let own = agents.iter().find(|agent| agent["profile"] == "a").unwrap();
    assert_eq!(own["end"], "ended", "{done:?}");
    let answers = own["result"].as_array().unwrap().iter();
    let is_unknown = |answer: &Value| {
        let said = answer["message"].as_str().unwrap_or_default();
        let is_unknown = said.contains("nobody knows what it has done");
        assert!(is_unknown || answer["ok"] == true, "{answer}");
        is_unknown
    };
    answers.map(is_unknown).collect()
}

fn texts(yard: &Yard) -> Vec<String> {
    yard.effects().iter().map(|line: &Value| line["text"].as_str().unwrap().to_owned()).collect()
}

/// Kills the program once so many notes were begun, of which the last one waits.
fn killed(yard: &Yard, session: &str, notes: usize) {
    fs::write(yard.file("waits"), "").unwrap();
    let mut supervisor = supervise(yard, session).spawn().unwrap();
    while yard.effects().len() < notes {
        assert_eq!(supervisor.try_wait().unwrap(), None, "it has ended");
        std::thread::yield_now();
    }
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    fs::remove_file(yard.file("waits")).unwrap();
}

/// CL-8: across a kill of the supervisor, calls of equal id, tool and arguments are answered as they were: what had ended with
/// its result, what was running as `interrupted`; the rest runs. Nothing happens twice, however often it is started again. In
/// another session everything runs anew.
#[test]
fn an_agent_that_is_started_again_repeats_nothing() {
    let yard = yard(None);
    killed(&yard, "monday", 1);
    let expect = [true, false, false];
    assert_eq!(answers(&yard, "monday"), expect);
    let once = ["root/a 1", "root/a 2", "root/a 3"];
    assert_eq!(texts(&yard), once);
    assert_eq!(answers(&yard, "monday"), expect);
    assert_eq!(texts(&yard), once);
    assert_eq!(answers(&yard, "tuesday"), [false; 3]);
    assert_eq!(texts(&yard), [once, once].concat());
}

/// CL-8: a call that was cut off and may be repeated runs again in the next life, and is answered as it was in that one in all
/// that follow.
#[test]
fn what_has_run_again_has_its_result() {
    let yard = yard(None);
    let config = fs::read_to_string(yard.file("toolyard.toml")).unwrap();
    let repeats = "\n[tools.note]\nidempotent = true\n";
    fs::write(yard.file("toolyard.toml"), config + repeats).unwrap();
    killed(&yard, "monday", 1);
    let all = ["root/a 1", "root/a 1", "root/a 2", "root/a 3"];
    for life in 2..5 {
        assert_eq!(answers(&yard, "monday"), [false; 3], "in life {life}");
        assert_eq!(texts(&yard), all, "in life {life}");
    }
}

/// CL-8: a call that had ended before the kill has its result.
#[test]
fn what_had_ended_has_its_result() {
    let yard = yard(None);
    let config = fs::read_to_string(yard.file("toolyard.toml")).unwrap();
    // It waits once two notes are there.
    let waits = config.replace("if [ -e ../waits ]", "if [ -e ../waits ] && grep -q ' 2' ../effects");
    assert_ne!(waits, config);
    fs::write(yard.file("toolyard.toml"), waits).unwrap();
    killed(&yard, "monday", 2);
    assert_eq!(answers(&yard, "monday"), [false, true, false]);
    assert_eq!(texts(&yard), ["root/a 1", "root/a 2", "root/a 3"]);
}

/// CL-8, AG-10: an agent with a name that another one had started is started again, and repeats nothing either.
#[test]
fn a_named_agent_of_an_agent_repeats_nothing() {
    let yard = yard(Some("kid"));
    killed(&yard, "monday", 1);
    assert_eq!(texts(&yard), ["root/a/kid 1"]);
    assert_eq!(answers(&yard, "monday"), [false; 4]);
    let all = ["root/a/kid 1", "root/a/kid 2", "root/a/kid 3", "root/a 1", "root/a 2", "root/a 3"];
    assert_eq!(texts(&yard), all);
}

/// CL-8, JR-7: a call whose start was lost with the power may have been made, and is not made again.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn what_may_have_been_started_is_not_repeated() {
    let yard = yard(None);
    let path = yard.file("agent.journal");
    let journal = Journal::open(&path, Settings::default().durability(Durability::Process)).unwrap();
    let note = tool_fn(ToolSpec::write("note"), |_: Value, _: ToolContext| async {
        Ok("noted, which nobody knows")
    });
    let builder = Engine::builder().tool(note).confirmations(Confirmations::auto());
    let engine = builder.recorder(LosesStarts(journal)).build().await.unwrap();
    let agent = engine.session("monday").fork(ForkPolicy::default().name("a")).unwrap();
    let noted = agent.dispatch(vec![Call::new("1", "note", json!({"text": "root/a 1"}))]).await;
    assert!(noted[0].status.is_ok(), "{noted:?}");
    engine.shutdown(Drain::default()).await;
    drop((agent, engine)); // and so not closed
    started_since(&path);
    for _ in 0..2 {
        assert_eq!(answers(&yard, "monday"), [true, false, false]);
        assert_eq!(texts(&yard), ["root/a 2", "root/a 3"]);
    }
}
