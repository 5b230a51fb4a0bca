use super::*;
use toolyard::{Call, Content, ErrorKind, Routing, Sandbox, ToolOutput};

fn line(tell: &Tell<'_>) -> String {
    let mut line = Vec::new();
    tell.write(&mut line);
    let text = String::from_utf8(line).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    text.trim_end().to_owned()
}

fn result(output: ToolOutput) -> String {
    let outcome = Outcome::new(&Call::new("c", "t", "{}"), Routing::Read, Ok(output));
    let line = line(&Tell::Response { outcome: &outcome, meta: false });
    let rest = line.strip_prefix(r#"{"op":"tool_response","tool_call_id":"c","ok":true,"result":"#);
    rest.unwrap_or_else(|| panic!("{line}")).strip_suffix('}').unwrap().to_owned()
}

/// AG-1: a result is the output if that is an object, else its parts, and its text if it has no other parts.
#[test]
fn a_result_is_an_object() {
    assert_eq!(result(ToolOutput::json(json!({"a": 1}))), r#"{"a":1}"#);
    assert_eq!(
        result(ToolOutput::text("a\nb")),
        r#"{"content":[{"type":"text","text":"a\nb"}],"text":"a\nb"}"#
    );
    assert_eq!(
        result(ToolOutput::json(json!([1]))),
        r#"{"content":[{"type":"text","text":"[1]"}],"text":"[1]"}"#
    );
    assert_eq!(result(ToolOutput::parts(vec![])), r#"{"content":[],"text":""}"#);
    let image = Content::Image { media_type: "image/png".into(), data: "AA==".into() };
    let expect = r#"{"content":[{"type":"image","media_type":"image/png","data":"AA=="}]}"#;
    assert_eq!(result(ToolOutput::parts(vec![image])), expect);
}

/// AG-1, V6: a failure is one of five words, and a message for a model; what is ours stands under `meta`, for those who
/// want to hear it.
#[test]
fn a_failure_is_a_word_and_a_message() {
    for (kind, word) in [
        (ErrorKind::NotFound, "tool_not_found"),
        (ErrorKind::BudgetExceeded, "permission_denied"),
        (ErrorKind::FsDenied, "fs_denied"),
        (ErrorKind::KeyMismatch, "invalid_args"),
        (ErrorKind::Panic, "tool_failed"),
    ] {
        let error = toolyard::CallError::new(kind, "no").with_advice("").not_started();
        let outcome = Outcome::new(&Call::new("c", "t", "{}"), Routing::ShortCircuit, Err(error));
        let plain = line(&Tell::Response { outcome: &outcome, meta: false });
        let expect = format!(
            r#"{{"op":"tool_response","tool_call_id":"c","ok":false,"error":"{word}","message":"no"}}"#
        );
        assert_eq!(plain, expect);
        let more = line(&Tell::Response { outcome: &outcome, meta: true });
        let more: Value = serde_json::from_str(&more).unwrap();
        assert_eq!(
            (&more["meta"]["code"], &more["meta"]["outcome"]),
            (&json!(kind.code()), &json!("not_started"))
        );
        assert_eq!(more["meta"]["sandbox"], json!(Sandbox::Host));
    }
}

/// SM-5: an agent is told that its arguments were changed.
#[test]
fn changed_arguments_are_told() {
    let mut outcome =
        Outcome::new(&Call::new("c", "t", "{}"), Routing::Serial, Ok(ToolOutput::json(json!({}))));
    outcome.set_edited(Some(json!({"path": "b"}).into()));
    let line: Value =
        serde_json::from_str(&line(&Tell::Response { outcome: &outcome, meta: false })).unwrap();
    let note = r#"The arguments of this call were changed by the person who approved it: {"path":"b"}"#;
    assert_eq!(line["note"], note);
}

/// AG-2: everything else that an agent is told, as the document shows it.
#[test]
fn the_other_lines_stand_as_documented() {
    let id = CallId::from("c1");
    let delta = line(&Tell::Delta { tool_call_id: &id, text: "a\u{2028}" });
    assert_eq!(delta, "{\"op\":\"tool_delta\",\"tool_call_id\":\"c1\",\"text\":\"a\u{2028}\"}");
    let refused = Refused::new("no").of("cancel", Some(id.clone()));
    let error = line(&Tell::Error { refused: &refused, line: 7 });
    assert_eq!(error, r#"{"op":"error","message":"no","line":7,"refused":"cancel","tool_call_id":"c1"}"#);
    assert_eq!(line(&Tell::Shutdown { grace_ms: 3000 }), r#"{"op":"shutdown","grace_ms":3000}"#);
    let tools = [ToolSpec::pure("Echo").describe("says it")];
    let (agent, input) = (AgentPath::root(), json!({"a": 1}));
    let welcome = Welcome { agent: &agent, input: Some(&input), tools: &tools };
    let expect = concat!(
        r#"{"op":"welcome","protocol":1,"agent":"root","input":{"a":1},"tools":[{"name":"Echo","#,
        r#""description":"says it","input_schema":null,"side_effects":"none"}]}"#
    );
    assert_eq!(line(&Tell::Welcome(welcome)), expect);
}
