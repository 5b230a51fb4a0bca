//! Arguments too deep for any parser: their own call fails, and its siblings run.

use crate::child::toolyard;

#[test]
fn arguments_without_end_cost_their_own_call_alone() {
    let endless = format!(r#"{{"text":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let echo = |id, arguments: &str| format!(r#"{{"call_id":"{id}","name":"echo","arguments":{arguments}}}"#);
    let calls = [echo("a", r#"{"text":"x"}"#), echo("b", &endless), echo("c", r#"{"text":"y"}"#)];
    let done = toolyard(&["run", "--report", "none"], &format!(r#"{{"calls":[{}]}}"#, calls.join(",")));
    let line = "toolyard: invalid_input: b 'echo': Invalid JSON: recursion limit exceeded at position ";
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.starts_with(line), "{}", done.stderr);
    let answer = done.json();
    let statuses: Vec<_> = answer["results"].as_array().unwrap().iter().map(|r| &r["status"]).collect();
    assert_eq!(statuses, ["ok", "error", "ok"]);
}
