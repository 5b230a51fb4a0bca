//! Agents that start agents (AG-10), and share one order.

use crate::yard::{Yard, is_missing};
use serde_json::{Value, json};
use std::fs;

/// A tool that adds a line to a file in two steps, so that two at once would lose one.
const ADD: &str = r#"
[workspace]
root = "data"
[program.add]
description = "Adds a line"
command = ["/bin/bash", "./add.sh"]
side_effects = "write"
input_schema = { type = "object", properties = { line = { type = "string" } }, required = ["line"] }
"#;

const ADD_SH: &str = r#"
cd DATA
test ! -e busy || { echo "somebody else is here"; exit 1; }
: >busy
count=$(cat count)
echo "$(sed 's/.*"line":"\([^"]*\)".*/\1/')" >>lines
sleep 0.01
echo $((count + 1)) >count
rm busy
"#;

/// AG-3, AG-10, CC-7: a tree of 1 + 8 + 64 processes writes one file: nobody comes between, and nothing is lost.
#[test]
fn a_tree_of_processes_writes_one_file() {
    if is_missing() {
        return;
    }
    let names = |count| (1..=count).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
    let boss = |child: &str, count| {
        format!(
            "command = AGENT\nfs = [\"rw:data\"]\ntools = [\"Agent\", \"add\"]\nmay_spawn = [\"{child}\"]\n\
             env = {{ CC_RUNNER_BEHAVIOR = \"boss\", CHILD = \"{child}\", CHILDREN = \"{}\" }}\n",
            names(count)
        )
    };
    let config = format!(
        "[agents.top]\n{}\n[agents.middle]\ninstances = 0\n{}\n\
         [agents.leaf]\ninstances = 0\nfs = [\"rw:data\"]\ncommand = AGENT\ntools = [\"add\"]\nenv = {{ CC_RUNNER_BEHAVIOR = \"append\" }}\n\
         {ADD}",
        boss("middle", 8),
        boss("leaf", 8)
    );
    let yard = Yard::new("agents-tree", &config);
    let data = yard.dir.join("data");
    fs::write(yard.dir.join("add.sh"), ADD_SH.replace("DATA", data.to_str().unwrap())).unwrap();
    fs::write(yard.dir.join("data/count"), "0").unwrap();
    let reports = yard.reports();
    assert_eq!(reports.len(), 73, "{reports:?}");
    assert!(reports.iter().all(|report| report["end"] == "ended"), "{reports:?}");
    // The last one to end is the first one.
    let top = &reports[72];
    assert_eq!(top["agent"], "root/top");
    let middle = top["result"].as_array().unwrap();
    assert_eq!(middle.len(), 8);
    for answer in middle {
        let leaves = answer["result"]["result"].as_array().unwrap_or_else(|| panic!("{answer}"));
        assert!(leaves.len() == 8 && leaves.iter().all(|leaf| leaf["result"]["ok"] == true), "{answer}");
    }
    assert_eq!(fs::read_to_string(yard.dir.join("data/count")).unwrap().trim(), "64");
    let lines = fs::read_to_string(yard.dir.join("data/lines")).unwrap();
    let mut lines: Vec<_> = lines.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), 64);
    let started = yard.audit().iter().filter(|line| line["event"] == "tool.call.dispatched").count();
    assert_eq!(started, 8 + 64 + 64);
}

/// AG-10: only profiles that are named may be started, and a child may do no more than its parent.
#[test]
fn a_child_may_do_no_more_than_its_parent() {
    if is_missing() {
        return;
    }
    let config = |may_spawn: &str, tools: &str| {
        format!(
            "[agents.boss]\ncommand = AGENT\ntools = [\"Agent\"{tools}]\nmay_spawn = [{may_spawn}]\n\
             env = {{ CC_RUNNER_BEHAVIOR = \"boss\", CHILD = \"child\", CHILDREN = \"one\" }}\n\
             [agents.child]\ncommand = AGENT\ninstances = 0\ntools = [\"Echo\"]\n"
        )
    };
    let answer = |config: &str| -> Value {
        let reports = Yard::new("agents-children", config).reports();
        reports.last().unwrap()["result"][0].clone()
    };
    assert_eq!(answer(&config("", ""))["error"], "permission_denied");
    let narrowed = answer(&config("\"child\"", ""));
    assert_eq!(narrowed["result"]["error"], json!("permission_denied"), "{narrowed}");
    let whole = answer(&config("\"child\"", ", \"Echo\""));
    assert_eq!(whole["result"]["result"], json!({"text": "hello"}), "{whole}");
}

/// AG-9, AG-10: a child that fails is its call's failure; one whose parent ends is ended with it.
#[test]
fn a_child_ends_with_its_parent() {
    if is_missing() {
        return;
    }
    let config = |child: &str, limits: &str| {
        format!(
            "[agents.boss]\ncommand = AGENT\ntools = [\"Agent\"]\nmay_spawn = [\"child\"]\n{limits}\n\
             env = {{ CC_RUNNER_BEHAVIOR = \"boss\", CHILD = \"child\", CHILDREN = \"one\" }}\n\
             [agents.child]\ncommand = AGENT\ninstances = 0\nenv = {{ CC_RUNNER_BEHAVIOR = \"{child}\" }}\n"
        )
    };
    let reports = Yard::new("agents-failing-child", &config("exit=5", "")).reports();
    let answer = &reports[1]["result"][0];
    assert_eq!((&reports[0]["end"], &answer["error"]), (&json!("failed(5)"), &json!("tool_failed")));
    assert!(
        answer["message"].as_str().unwrap().contains("agent 'root/boss/one' ended as failed(5)"),
        "{answer}"
    );
    let reports = Yard::new("agents-orphan", &config("loop", "limits = { wall_time = \"500ms\" }")).reports();
    let mut ends: Vec<_> =
        reports.iter().map(|report| format!("{} {}", report["agent"], report["end"])).collect();
    ends.sort();
    // The smaller limit is the child's too, and the same.
    assert_eq!(ends[0], "\"root/boss\" \"limit(wall time)\"");
    assert!(
        ["stopped", "limit(wall time)"].iter().any(|end| ends[1] == format!("\"root/boss/one\" \"{end}\"")),
        "{ends:?}"
    );
}

/// AG-10, SM-8: a name is free again when its agent has ended; a call of `Agent` that takes too long ends its agent.
#[test]
fn a_name_is_used_again_and_a_call_may_time_out() {
    if is_missing() {
        return;
    }
    let script = r#"
        call() { say "{\"op\":\"tool_call\",\"tool_call_id\":\"$1\",\"tool\":\"Agent\",\"args\":{\"profile\":\"$2\",\"name\":\"one\"}$3}"; hear; }
        say '{"op":"hello","protocol":1,"meta":true}'; hear
        call 1 child; first=$heard
        call 2 child; second=$heard
        call 3 lasts ',"meta":{"timeout_ms":3000}'; third=$heard
        call 4 child
        say "{\"op\":\"bye\",\"result\":[$first,$second,$third,$heard]}"
    "#;
    let children = "may_spawn = [\"child\", \"lasts\"]\n[agents.child]\ncommand = AGENT\ninstances = 0\ntools = [\"Echo\"]\n\
                    [agents.lasts]\ncommand = AGENT\ninstances = 0\nenv = { CC_RUNNER_BEHAVIOR = \"loop\" }\n";
    let reports = Yard::scripted("agents-names", script, &["Agent", "Echo"], children).reports();
    let answers = &reports.get(4).unwrap_or_else(|| panic!("{reports:?}"))["result"];
    for at in [0, 1, 3] {
        assert_eq!(answers[at]["ok"], true, "{answers}");
    }
    assert_eq!(
        (&answers[2]["error"], &answers[2]["meta"]["code"]),
        (&json!("tool_failed"), &json!("timeout"))
    );
    let ends: Vec<_> =
        reports.iter().map(|report| format!("{} {}", report["agent"], report["end"])).collect();
    let ended = "\"root/a/one\" \"ended\"";
    assert_eq!(ends, [ended, ended, "\"root/a/one\" \"stopped\"", ended, "\"root/a\" \"ended\""]);
}
