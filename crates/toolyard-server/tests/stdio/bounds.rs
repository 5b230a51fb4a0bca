//! Whatever a parent sends: the conversation goes on or ends, and everything is answered (AG-14).

use crate::parent::Parent;
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// AG-14: a line that is wrong is an error with its number, and the conversation goes on.
#[tokio::test]
async fn a_wrong_line_is_an_error_and_nothing_more() {
    let mut parent = Parent::new().await;
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for (line, code) in [
        ("x", "malformed"),
        ("{}", "invalid"),
        (r#"{"op":"tool_calls","calls":[]}"#, "invalid"),
        (r#"{"op":"respond","turn":"t","message":{"role":"user"}}"#, "response"),
        (&format!(r#"{{"op":"respond","turn":"t","message":{deep}}}"#), "response"),
    ] {
        parent.send_bytes(format!("\r\n{line}\r\n").as_bytes()).await;
        let error = parent.line("error").await;
        assert_eq!(error["code"], code, "{line}: {error}");
    }
    assert_eq!(parent.ask(json!({"op": "sing"})).await["line"], 11);
}

/// AG-14: a turn with too many calls is refused, and one without any ends at once.
#[tokio::test]
async fn a_turn_has_a_bound() {
    let mut parent = Parent::new().await;
    let calls: Vec<Value> =
        (0..10_001).map(|at| json!({"tool_call_id": at.to_string(), "tool": "a", "args": {}})).collect();
    parent.send(json!({"op": "tool_calls", "turn": "t", "calls": calls})).await;
    assert_eq!(parent.line("error").await["code"], "too_many");
    parent.send(json!({"op": "tool_calls", "turn": "t", "calls": []})).await;
    assert_eq!(parent.ended("t").await["calls"], 0);
}

/// Words that lines of a parent are made of.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\n",
    "\\",
    "null",
    "true",
    "1",
    "-1e99",
    "\u{0}",
    "\u{feff}",
    " ",
    "\"op\"",
    "\"id\"",
    "\"turn\"",
    "\"session\"",
    "\"calls\"",
    "\"tool_call_id\"",
    "\"args\"",
    "\"tool\"",
    "\"call_id\"",
    "\"tool_calls\"",
    "\"respond\"",
    "\"hello\"",
    "\"register\"",
    "\"tool_result\"",
    "\"bye\"",
    "{\"op\":\"tool_calls\",\"turn\":\"t\",\"calls\":[{\"tool_call_id\":\"c\",\"tool\":\"f\",\"args\":{}}]}\n",
    "{\"op\":\"tool_result\",\"call_id\":\"i1\",\"result\":1}\n",
    "{\"op\":\"tool_calls\",\"turn\":\"n\",\"within\":\"i1\",\"calls\":[{\"tool_call_id\":\"c\",\"tool\":\"f\",\"args\":{}}]}\n",
    "{\"op\":\"tool_calls\",\"turn\":\"m\",\"more\":true,\"calls\":[{\"tool_call_id\":\"d\",\"tool\":\"f\",\"args\":{}}]}\n",
    "{\"op\":\"tool_calls\",\"turn\":\"m\",\"continues\":true,\"calls\":[]}\n",
    "{\"op\":\"tool_calls\",\"turn\":\"a\",\"after\":\"t\",\"calls\":[{\"tool_call_id\":\"e\",\"tool\":\"f\",\"args\":{}}]}\n",
    "{\"op\":\"bye\"}\n",
    "{\"op\":\"cancel\",\"turn\":\"t\"}\n",
    "{\"op\":\"fork\"}\n",
    "{\"op\":\"open\",\"session\":\"s\"}\n",
    "{\"op\":\"close\",\"session\":\"main\"}\n",
    "{\"op\":\"hello\",\"protocol\":1,\"confirm\":true,\"deltas\":true,\"events\":true}\n",
    "{\"op\":\"register\",\"definition\":{\"name\":\"f\",\"side_effects\":\"none\"}}\n",
    "{\"op\":\"unregister\",\"tool\":\"f\"}\n",
];

/// AG-14: of any bytes, whatever comes is JSON, a line each; each turn that has a response ends once, and nothing is left.
/// 1 000 conversations of up to 60 words each.
#[tokio::test(start_paused = true)]
async fn any_bytes_are_survived() {
    for seed in 0..1_000 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut parent = Parent::new().await;
        let count = random.random_range(1..60);
        let words: String = (0..count).map(|_| *WORDS.choose(&mut random).unwrap()).collect();
        let engine = parent.engine.clone();
        parent.send_bytes(words.as_bytes()).await;
        let (end, lines) = parent.closed().await;
        let mut open = BTreeSet::new();
        for line in &lines {
            match line["op"].as_str().unwrap() {
                "tool_response" => drop(open.insert(line["turn"].to_string())),
                "turn_ended" => drop(open.remove(&line["turn"].to_string())),
                _ => {}
            }
        }
        assert!(end.is_err() || open.is_empty(), "seed {seed}: {words:?}: {lines:?}");
        let report = engine.shutdown(Default::default()).await;
        assert_eq!(report.abandoned, 0, "seed {seed}: {words:?}");
    }
}
