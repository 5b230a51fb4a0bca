//! The account of calls, as text and as JSON.

use super::tampered::{audit, log};
use crate::child::toolyard;
use serde_json::{Value, json};

/// OB-1: one line per call, with why it was allowed to run and how it ended.
#[test]
fn each_call_has_a_line() {
    let (_, lines) = log("lines");
    let done = audit(&lines);
    let of =
        |id: &str| done.stdout.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{done:?}"));
    assert!(done.stdout.contains("session run, turn 1, 20"), "{done:?}");
    let read = of("  call_1 ");
    assert!(read.contains("  list_dir      ") && read.contains("  allowed by policy 1: ok, "), "{read}");
    let write = of("  call_4 ");
    assert!(write.contains("  asked (request 1), approved by --approve, policy 1: ok, "), "{write}");
    assert!(done.stdout.contains("drain: stopped"), "{done:?}");
}

/// Only the selected call is shown, but the whole log is checked.
#[test]
fn an_account_can_be_of_one_call() {
    let (file, lines) = log("narrow");
    let file = file.to_str().unwrap();
    let done = toolyard(&["audit", file, "--session", "run", "--call", "call_5"], "");
    let shown: Vec<&str> = done.stdout.lines().collect();
    assert_eq!((done.code, shown.len()), (Some(0), 3), "{done:?}");
    assert!(shown[1].contains("call_5") && shown[2].starts_with(&format!("whole: {} events", lines.len())));
    let done = toolyard(&["audit", file, "--session", "other", "--json"], "");
    let account = done.json();
    assert_eq!((account["calls"].as_array().unwrap().len(), &account["calls_received"]), (0, &8.into()));
}

/// The account as one JSON object, whole or not.
#[test]
fn an_account_can_be_json() {
    let (_, mut lines) = log("json");
    let json = |lines: &[String]| toolyard(&["audit", "-", "--json"], &(lines.join("\n") + "\n"));
    let account = json(&lines).json();
    assert_eq!(account["verdict"], "whole");
    assert_eq!((&account["has_end"], &account["sessions"]), (&true.into(), &1.into()));
    let calls = account["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 8);
    let write = calls.iter().find(|call| call["call_id"] == "call_4").unwrap();
    assert_eq!(write["decision"]["what"], "approved");
    assert_eq!(
        (&write["decision"]["by"], &write["decision"]["policy_version"]),
        (&"approver".into(), &1.into())
    );
    assert_eq!((&write["outcome"]["ok"], &write["attempts"]), (&true.into(), &1.into()));
    lines.remove(10);
    let done = json(&lines);
    assert_eq!(done.code, Some(1));
    assert_eq!(
        (&done.json()["verdict"], &done.json()["faults"][0]["line"]),
        (&"not_whole".into(), &11.into())
    );
    lines[4] = "{".to_owned();
    let done = json(&lines);
    assert_eq!(done.code, Some(3));
    assert_eq!(
        (&done.json()["verdict"], &done.json()["unreadable"]["line"]),
        (&"unreadable".into(), &5.into())
    );
}

/// Characters that a terminal would obey are escaped.
#[test]
fn texts_of_models_move_no_terminal() {
    let (_, mut lines) = log("terminal");
    for line in &mut lines {
        *line = line.replace("\"call_1\"", "\"\\u001b[2Jcall\\u202e_1\\n\"");
    }
    let done = audit(&lines);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(
        done.stdout.contains(r"\u001b[2Jcall\u202e_1\u000a") && !done.stdout.contains('\u{1b}'),
        "{done:?}"
    );
    lines[3] = "{\"v\":1,\"event\":\"\\u001b[2J\"}".to_owned();
    let done = audit(&lines);
    assert!(done.code == Some(3) && !done.stderr.contains('\u{1b}'), "{done:?}");
}

/// SM-10: a call that a drain has suspended is no fault, with its question open or without one, and the account says that
/// it is suspended.
#[test]
fn a_suspended_call_is_no_fault() {
    let common = |seq: u32| json!({"v": 1, "seq": seq, "position": seq, "wall_ms": 1, "mono_us": 1, "session": "s", "agent": "root"});
    let of_turn = json!({"turn": 1, "batch": 1});
    let of_call =
        |at: u32| json!({"turn": 1, "batch": 1, "run": at, "call_id": format!("call_{at}"), "index": at});
    let request = format!("{}.1.{}", "0".repeat(16), "0".repeat(16));
    let asked = json!({
        "event": "tool.confirmation_requested", "tool_name": "write_file", "side_effects": "write",
        "expires_ms": 300_000, "request": request, "digest": "0".repeat(64), "input_summary": "{}",
    });
    let events = [
        (json!({}), json!({"event": "session.opened"})),
        (of_turn.clone(), json!({"event": "turn.started", "calls": 2})),
        (of_call(0), json!({"event": "tool.call.received", "tool_name": "write_file", "bytes": 2})),
        (of_call(1), json!({"event": "tool.call.received", "tool_name": "write_file", "bytes": 2})),
        (of_call(0), asked),
        (of_call(0), json!({"event": "call.suspended", "tool_name": "write_file"})),
        (of_call(1), json!({"event": "call.suspended", "tool_name": "write_file"})),
        (of_turn, json!({"event": "turn.ended", "ok": 0, "failed": 2})),
        (json!({}), json!({"event": "session.closed"})),
    ];
    let line = |(seq, (place, event)): (u32, (Value, Value))| {
        let parts = [common(seq), place, event];
        let fields = parts.iter().flat_map(|part| part.as_object().unwrap().clone());
        Value::from(fields.collect::<serde_json::Map<_, _>>()).to_string()
    };
    let log = (1..).zip(events).map(line).collect::<Vec<_>>().join("\n") + "\n";
    let done = toolyard(&["audit", "-"], &log);
    assert_eq!(done.code, Some(0), "{done:?}");
    let of =
        |id: &str| done.stdout.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{done:?}"));
    assert!(of("call_0").ends_with("asked (request 1), suspended by a drain"), "{done:?}");
    assert!(of("call_1").ends_with("  suspended by a drain"), "{done:?}");
    let account = toolyard(&["audit", "-", "--json"], &log).json();
    assert_eq!(account["verdict"], "whole");
    for call in account["calls"].as_array().unwrap() {
        assert_eq!(call["decision"]["what"], "suspended");
        assert_eq!(call["outcome"], json!({"ok": false, "suspended": true}));
    }
}
