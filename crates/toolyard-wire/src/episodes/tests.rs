use super::*;
use toolyard_core::{CallError, ErrorKind, Routing, ToolOutput};

#[track_caller]
fn fails(line: &str, expect: &str) {
    assert_eq!(Episode::parse_line(line).unwrap_err().to_string(), expect);
}

#[test]
fn an_episode_has_tools_turns_and_fields_that_pass() {
    let line = r#"{"id":"e","expected":{"x":1},
        "tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"class_hint":"read_only","r":1}],
        "turns":[[{"call_id":"a","name":"f","arguments":{"x":1}},{"name":"g"}],[]]}"#;
    let episode = Episode::parse_line(line).unwrap();
    let tools = episode.tools.unwrap();
    assert_eq!(tools[0].class_hint.map(ClassHint::class), Some(ToolClass::Read));
    assert_eq!(episode.turns.len(), 2);
    assert_eq!(episode.turns[0][1].id.as_str(), "call_1");
    assert!(episode.turns[1].is_empty());
}

#[test]
fn an_id_may_be_a_number_and_tools_may_be_left_out() {
    let episode = Episode::parse_line(r#"{"id":7,"turns":[]}"#).unwrap();
    assert_eq!((episode.id.as_str(), episode.tools), ("7", None));
}

#[test]
fn a_line_that_is_no_episode_says_where_and_why() {
    fails(
        r#"{"calls":[]}"#,
        "this is a batch with `calls`, not an episode with `turns`: read it with --from neutral, one at a time",
    );
    fails(r#"{"id":"e"}"#, "the episode has no `turns`");
    fails(r#"{"turns":[]}"#, "the episode has no `id`");
    fails(r#"{"id":"e","turns":{}}"#, "turns: expected an array, found an object");
    fails(r#"{"id":"e","turns":[[],{}]}"#, "turns[1]: expected an array of calls, found an object");
    fails(r#"{"id":"e","turns":[[1]]}"#, "turns[0][0]: expected an object, found a number");
    fails(r#"{"id":"e","turns":[],"tools":[{}]}"#, "tools[0]: missing field `name`");
    fails("[]", "the line: expected an object, found an array");
    fails("{", "the JSON ends too early, at line 1 column 1: the response was cut off, fetch it again");
}

#[test]
fn lines_are_numbered_and_blank_ones_passed_over() {
    let text = "{\"id\":\"a\",\"turns\":[]}\n\n  \r\n{}\n";
    let found: Vec<(usize, bool)> = Episode::parse_lines(text).map(|(n, line)| (n, line.is_ok())).collect();
    assert_eq!(found, [(1, true), (4, false)]);
}

#[test]
fn a_turn_is_answered_in_one_line() {
    let line = r#"{"id":"e","turns":[[{"call_id":"a","name":"f"},{"call_id":"b","name":"g"}]]}"#;
    let episode = Episode::parse_line(line).unwrap();
    let [a, b] = &episode.turns[0][..] else { panic!("two calls") };
    let error = CallError::new(ErrorKind::NotFound, "Tool 'g' not found. Available: [f]");
    let outcomes = [
        Outcome::new(a, Routing::Read, Ok(ToolOutput::json(json!({"n": 1})))),
        Outcome::new(b, Routing::ShortCircuit, Err(error)),
    ];
    let line = serde_json::to_string(&episode.results(0, &outcomes)).unwrap();
    assert!(
        line.starts_with(r#"{"id":"e","turn":0,"results":[{"call_id":"a","name":"f","ok":true,"#),
        "{line}"
    );
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["id"], &line["turn"]), (&json!("e"), &json!(0)));
    assert_eq!(line["results"][0], json!({"call_id": "a", "name": "f", "ok": true, "output": {"n": 1}}));
    assert_eq!(line["results"][1]["error"]["code"], "not_found");
}
