//! Episodes: one output line per turn, whatever is wrong with other lines.

use crate::{child::toolyard, place::dir};
use serde_json::json;

const TWO_TURNS: &str = r#"{"id":"e1","turns":[[{"call_id":"a","name":"echo","arguments":{"text":"1"}}],[{"call_id":"a","name":"echo","arguments":{"text":"2"}}]]}"#;

#[test]
fn every_turn_is_answered_by_a_line_of_its_own() {
    let done = toolyard(&["run", "-q"], &format!("\n{TWO_TURNS}\n"));
    let result = |text: &str| json!([{"call_id": "a", "name": "echo", "ok": true, "output": {"text": text}}]);
    let expect = [
        json!({"id": "e1", "turn": 0, "results": result("1")}),
        json!({"id": "e1", "turn": 1, "results": result("2")}),
    ];
    assert_eq!((done.code, done.lines()), (Some(0), expect.to_vec()));
}

#[test]
fn a_line_that_cannot_be_read_costs_no_other() {
    let input = format!("{TWO_TURNS}\n{{\"id\":\"e2\"\n{{\"id\":\"e3\",\"turns\":3}}\n{TWO_TURNS}\n");
    let done = toolyard(&["run", "--report", "none"], &input);
    assert_eq!((done.code, done.lines().len()), (Some(3), 4));
    let lines: Vec<&str> = done.stderr.lines().collect();
    let cut = "the JSON ends too early, at line 1 column 10: the response was cut off, fetch it again";
    assert_eq!(lines[0], format!("toolyard: standard input line 2: {cut}"));
    assert_eq!(lines[1], "toolyard: standard input line 3: turns: expected an array, found a number");
    assert_eq!(lines.len(), 2);
}

#[test]
fn a_declared_tool_is_planned_and_not_run() {
    let tool = json!({"name": "deploy", "class_hint": "concurrent_mut",
        "input_schema": {"type": "object", "required": ["to"]}});
    let calls = json!([
        {"call_id": "a", "name": "deploy", "arguments": {"to": "here"}},
        {"call_id": "b", "name": "deploy", "arguments": {}},
    ]);
    let episode = json!({"id": "e", "tools": [tool], "turns": [calls]}).to_string();
    let plan = toolyard(&["plan", "--json"], &episode);
    let [batch] = plan.lines().try_into().unwrap();
    assert_eq!((plan.code, plan.stderr.as_str()), (Some(1), ""));
    assert_eq!((&batch["id"], &batch["turn"]), (&json!("e"), &json!(0)));
    assert_eq!(batch["invalid_calls"], json!(["b"]));
    assert_eq!(batch["runs"][0], json!({"routing": "concurrent", "calls": ["a"]}));
    assert_eq!(batch["calls"][0]["why"], "side effects: write, promoted");
    assert_eq!(batch["calls"][0]["approval"], "needs approval");
    assert_eq!(batch["calls"][1]["error"]["code"], "invalid_input");

    let run = toolyard(&["run", "--from", "episodes", "-q"], &episode);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.lines()[0]["results"][0]["error"]["code"], "not_found");
}

#[test]
fn a_declared_schema_outside_the_subset_is_named_by_its_pointer() {
    let tool = json!({"name": "f", "input_schema": {"properties": {"n": {"$ref": "#/x"}}}});
    let episode = json!({"id": "e", "tools": [tool], "turns": [[]]}).to_string();
    let done = toolyard(&["plan"], &format!("{episode}\n{TWO_TURNS}"));
    let line = "toolyard: standard input line 1: tools: tool 'f': schema keyword at '/properties/n/$ref' is outside \
                the supported subset of JSON Schema\n";
    assert_eq!((done.code, done.stderr.as_str()), (Some(3), line));
    assert!(done.stdout.ends_with(
        "2 batches with 2 calls: 0 invalid, 0 refused for other reasons; 1 line could not be read\n"
    ));
}

#[test]
fn turns_of_an_episode_go_in_order() {
    let workspace = dir("turns-in-order");
    let write = |text: &str| json!([{"call_id": "w", "name": "write_file", "arguments": {"path": "a", "content": text}}]);
    let read = json!([{"call_id": "r", "name": "read_file", "arguments": {"path": "a"}}]);
    let episode = json!({"id": "e", "turns": [write("1"), read, write("2"), read]}).to_string();
    let args = ["run", "-q", "--approve", "auto", "--workspace", workspace.to_str().unwrap()];
    let lines = toolyard(&args, &episode).lines();
    let content = |turn: usize| &lines[turn]["results"][0]["output"]["content"];
    assert_eq!((content(1), content(3)), (&json!("1"), &json!("2")));
}

#[test]
fn another_format_out_is_refused() {
    let done = toolyard(&["run", "--to", "gemini"], TWO_TURNS);
    let line = "toolyard: --to cannot be used with episodes: every turn has its own line of results\n";
    assert_eq!((done.code, done.stderr.as_str()), (Some(2), line));
}
