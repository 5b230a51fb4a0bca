use super::*;
use serde_json::json;

fn asked(line: &str) -> Result<Ask, Problem> {
    let (head, checked) = head(line);
    checked.and_then(|()| ask(&head, line))
}

/// AG-14: what is wrong with a line names the field, and nothing of it is done.
#[test]
fn what_is_wrong_is_named() {
    let long = "x".repeat(129);
    for (line, code, part) in [
        (r#"[1]"#.to_owned(), "malformed", "must be one JSON object"),
        (r#"{"op":"sing"}"#.to_owned(), "malformed", "no operation 'sing'"),
        (r#"{"id":1}"#.to_owned(), "invalid", "'op'"),
        (r#"{"op":"bye","id":1.5}"#.to_owned(), "invalid", "whole number"),
        (json!({"op": "turn_end", "turn": long}).to_string(), "invalid", "128 bytes"),
        (r#"{"op":"hello","protocol":2}"#.to_owned(), "invalid", "protocol 2 is not spoken"),
        (r#"{"op":"hello","protocol":1,"events":["tool.sung"]}"#.to_owned(), "invalid", "no events 'tool.sung'"),
        (r#"{"op":"open"}"#.to_owned(), "invalid", "'session' is missing"),
        (r#"{"op":"open","session":"a","limits":{"colour":1}}"#.to_owned(), "invalid", "unknown field `colour`"),
        (r#"{"op":"tool_calls","turn":"t","continues":true,"session":"s","calls":[]}"#.to_owned(), "invalid", "has its session"),
        (r#"{"op":"close","session":7}"#.to_owned(), "invalid", "'/session'"),
        (r#"{"op":"respond","turn":"t","from":"x","message":{}}"#.to_owned(), "invalid", "x"),
        (r#"{"op":"tool_calls","turn":"t","calls":[{"tool_call_id":"","tool":"a","args":{}}]}"#.to_owned(), "invalid", "1 to 1024 bytes"),
        (r#"{"op":"tool_calls","turn":"t","calls":[{"tool_call_id":"c","tool":"a"}]}"#.to_owned(), "invalid", "missing field `args`"),
        (r#"{"op":"tool_calls","turn":"t","calls":[{"tool_call_id":"c","tool":"a","args":{},"meta":{"colour":1}}]}"#.to_owned(), "invalid", "colour"),
        (r#"{"op":"tool_calls","turn":"t","calls":[{"tool_call_id":"c","tool":"a","args":{},"meta":{"agent":"root"}}]}"#.to_owned(), "invalid", "'meta.agent' cannot be set"),
        (r#"{"op":"tool_calls","turn":"t","within":"i1","session":"s","calls":[]}"#.to_owned(), "invalid", "within an invocation"),
        (r#"{"op":"register","definition":{"name":"a","side_effects":"read","colour":1}}"#.to_owned(), "invalid", "unknown field `colour`"),
        (r#"{"op":"confirmation","request_id":"q","decision":"perhaps","digest":"d"}"#.to_owned(), "invalid", "perhaps"),
        (r#"{"op":"tool_result","call_id":"i1"}"#.to_owned(), "invalid", "'result' is missing"),
    ] {
        let problem = asked(&line).expect_err(&line);
        assert_eq!(problem.code(), code, "{line}: {problem:?}");
        assert!(problem.detail().contains(part), "{line}: {problem:?}");
        assert!(!problem.detail().contains("line 1"), "{problem:?}");
    }
}

/// AG-14: an error says what it is about, as far as that can be read.
#[test]
fn a_head_is_read_by_itself() {
    let (head, checked) = head(r#"{"op":"sing","id":"7","turn":"t","more":[1,2]}"#);
    checked.unwrap();
    assert_eq!(
        (head.op.as_deref(), head.id, head.turn.as_deref()),
        (Some("sing"), Some(json!("7")), Some("t"))
    );
}

/// AG-14: fields that are not known are ignored, and those that are null are as if they were left out.
#[test]
fn what_is_not_known_is_ignored() {
    let line = r#"{"op":"tool_calls","turn":"t","colour":"red","more":null,"session":null,"within":null,
        "calls":[{"tool_call_id":"c","tool":"a","args":{"x":1e400},"meta":null,"colour":1}]}"#;
    let Ok(Ask::Calls(calls)) = asked(line) else { panic!() };
    assert_eq!((calls.calls.len(), calls.more, calls.within), (1, false, None));
    let Ok(Ask::Hello(hello)) = asked(r#"{"op":"hello","protocol":1,"deltas":true,"events":false}"#) else {
        panic!()
    };
    assert!(hello.deltas && !hello.meta && hello.events.is_none());
    let open = r#"{"op":"open","colour":"red","id":null,"session":"a","limits":null,"capabilities":{"tools":["a"]}}"#;
    assert!(matches!(asked(open), Ok(Ask::Open(_))));
}
