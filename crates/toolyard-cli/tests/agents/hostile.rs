//! Agents that mean no good: the supervisor lives, and others notice nothing (AG-2, AG-13).

use crate::yard::{Yard, is_missing};
use serde_json::{Value, json};

/// An agent that behaves so, beside one that behaves.
fn beside(name: &str, behavior: &str) -> (Value, Value) {
    let config = format!(
        "[agents.bad]\ncommand = AGENT\ntools = [\"Echo\"]\nenv = {{ CC_RUNNER_BEHAVIOR = {} }}\nlimits = {{ wall_time = \"1500ms\" }}\n\
         [agents.good]\ncommand = AGENT\ntools = [\"Echo\"]\n",
        json!(behavior)
    );
    let reports = Yard::new(name, &config).reports();
    let of = |name: &str| reports.iter().find(|report| report["agent"] == name).unwrap().clone();
    let (bad, good) = (of("root/bad"), of("root/good"));
    assert_eq!(
        (&good["end"], &good["result"]["result"]["text"]),
        (&json!("ended"), &json!("hello")),
        "{good}"
    );
    (bad, good)
}

/// AG-2, AG-13: floods, garbage, endless lines, and those that do not listen or do not speak.
#[test]
fn a_hostile_agent_harms_itself_alone() {
    if is_missing() {
        return;
    }
    let check = |behavior: &str, end: &str| {
        let (bad, _) = beside("agents-hostile", behavior);
        assert_eq!(bad["end"], end, "{behavior}: {bad}");
        bad
    };
    check("garbage", "protocol");
    check("long", "limit(line)");
    check("deaf", "limit(wall time)");
    check("slow", "limit(wall time)");
    let flood = check("flood", "limit(wall time)");
    assert!(flood["calls"].as_u64().unwrap() >= 1);
    let half = check("half", "ended");
    assert_eq!(half["calls"], 0);
}

/// AG-13: agents that do not read large results, however many, take no room that another one needs.
#[test]
fn results_that_are_not_read_cost_nobody_else() {
    if is_missing() {
        return;
    }
    let calls = |after: &str| {
        let line = |n: usize| {
            let (id, read) = (n.to_string(), json!({"path": "data/large"}));
            format!(
                "{{\"op\":\"tool_call\",\"tool_call_id\":\"{id}\",\"tool\":\"Read\",\"args\":{read}{after}}}"
            )
        };
        (0..200).map(line).collect::<Vec<_>>().join("\n")
    };
    let deaf = |name: &str, after: &str| {
        let calls = calls(after).replace('\'', "");
        format!(
            "[agents.{name}]\ncommand = [\"/bin/bash\", \"-c\", {}]\ntools = [\"Read\"]\nfs = [\"r:data\"]\n\
             limits = {{ wall_time = \"3s\" }}\n",
            json!(format!("printf '%s\\n' '{calls}'; sleep 1000"))
        )
    };
    let good = "[agents.good]\ncommand = [\"/bin/bash\", \"-c\", \"sleep 1; exec bash agent.sh\"]\nread = [\"agent.sh\"]\n\
                tools = [\"Read\"]\nfs = [\"r:data\"]\nenv = { CC_RUNNER_BEHAVIOR = 'tool_call={\"op\":\"tool_call\",\
                \"tool_call_id\":\"c\",\"tool\":\"Read\",\"args\":{\"path\":\"data/large\"}}' }\n";
    let many = (0..12).map(|n| deaf(&format!("apart{n}"), ",\"after\":[]")).collect::<String>();
    let config = format!("{}{many}{good}", deaf("deaf", ""));
    let yard = Yard::new("agents-unread", &config);
    std::fs::write(yard.dir.join("data/large"), "x".repeat(3 << 20)).unwrap();
    let reports = yard.reports();
    let good = reports.iter().find(|report| report["agent"] == "root/good").unwrap();
    assert_eq!(good["result"]["ok"], true, "{}", good["end"]);
}

/// AG-2: who closes its output is done, and is ended if it does not exit; who closes its input is still answered, and heard.
#[test]
fn one_end_may_be_closed() {
    if is_missing() {
        return;
    }
    let (numb, _) = beside("agents-numb", "numb");
    assert_eq!((&numb["end"], &numb["result"], &numb["calls"]), (&json!("ended"), &json!("numb"), &json!(1)));
    let (mute, _) = beside("agents-mute", "mute");
    assert_eq!(mute["end"], "limit(wall time)");
}

/// AG-8, SB-7: what an agent leaves behind ends with it, and holds nobody up.
#[test]
fn daemons_end_with_their_agent() {
    if is_missing() {
        return;
    }
    let (left, _) = beside("agents-daemons", "daemons");
    assert_eq!((&left["end"], &left["result"]), (&json!("ended"), &json!("left")));
    let found = std::process::Command::new("pgrep").args(["-f", "sleep 4711"]).output();
    assert!(found.is_ok_and(|found| found.stdout.is_empty()));
}
