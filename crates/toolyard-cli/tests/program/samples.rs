//! The samples that the README runs.

use crate::{
    child::{Done, toolyard},
    workspace::workspace,
};
use serde_json::Value;

fn run(sample: &str, name: &str, more: &[&str]) -> Done {
    let workspace = workspace(name);
    let mut args = vec!["run", sample, "--workspace", workspace.to_str().unwrap(), "--approve", "auto"];
    args.extend(more);
    toolyard(&args, "")
}

/// The samples in which one of the names is unknown. The calls are the same in every format.
const SAMPLES: [&str; 5] = [
    "examples/batch.json",
    "examples/responses/openai-responses.json",
    "examples/responses/anthropic.json",
    "examples/responses/anthropic-stream.sse",
    "examples/responses/gemini.json",
];

/// The results of a sample, independent of the format: the text, and whether it is an error.
fn neutral(done: &Done) -> Vec<(String, bool)> {
    let results = done.json()["results"].as_array().unwrap().clone();
    let text = |result: &Value| result["content"][0]["text"].as_str().unwrap().to_owned();
    results.iter().map(|result| (text(result), result["status"] == "error")).collect()
}

#[test]
fn the_first_command_prints_results_and_a_timeline() {
    let done = run("examples/responses/openai-chat.json", "first", &[]);
    assert_eq!(done.code, Some(0));
    let results = done.json();
    let ids: Vec<&str> =
        results.as_array().unwrap().iter().map(|one| one["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["call_1", "call_2", "call_3", "call_4", "call_5", "call_6", "call_7", "call_8"]);
    let trailing_read = "# This week\n\n- basil: daily, look for aphids\n- tomato: every second day\n";
    assert_eq!(results[5]["content"], trailing_read);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert!(lines[0].starts_with("run  call    tool"), "{}", done.stderr);
    assert!(lines[4].contains("write_file  serial") && lines[4].contains("for the end of run 0 [read]"));
    assert!(lines[9].starts_with("8 calls in 4 runs: 8 ok, 0 failed; "), "{}", lines[9]);
    assert!(!lines[9].contains("times as long"), "{}", lines[9]);
    assert_eq!(lines.len(), 10);
}

#[test]
fn every_sample_gives_the_same_results_together_and_one_by_one() {
    let expect = neutral(&run(SAMPLES[0], "reference", &["--sequential", "-q"]));
    assert_eq!(expect.len(), 8);
    assert_eq!(expect.iter().filter(|(_, failed)| *failed).count(), 1);
    for (index, sample) in SAMPLES.into_iter().enumerate() {
        let done = run(sample, &format!("sample-{index}"), &["--to", "neutral", "-q"]);
        assert_eq!((done.code, done.stderr.as_str()), (Some(1), ""), "{sample}");
        assert_eq!(neutral(&done), expect, "{sample}");
    }
}

#[test]
fn results_go_out_in_the_format_that_came_in() {
    let check = |sample: &str, pointer: &str| {
        let done = run(sample, &format!("own-{}", sample.replace(['/', '.'], "-")), &["-q"]);
        assert_eq!(done.json().pointer(pointer).and_then(Value::as_array).map(Vec::len), Some(8), "{sample}");
    };
    check("examples/batch.json", "/results");
    check("examples/responses/openai-responses.json", "");
    check("examples/responses/anthropic-stream.sse", "/content");
    check("examples/responses/gemini.json", "/parts");
}

#[test]
fn a_toolset_stops_at_its_first_failure() {
    let message = r#"{"role":"assistant","content":[
        {"type":"tool_use","id":"a","name":"echo","input":{"text":"before"}},
        {"type":"tool_use","id":"b","name":"click","input":{},"toolset_name":"browser"},
        {"type":"tool_use","id":"c","name":"click","input":{},"toolset_name":"browser"},
        {"type":"tool_use","id":"a","name":"echo","input":{"text":"twice"}},
        {"type":"tool_use","id":"d","name":"echo","input":{"text":"after"}}]}"#;
    let done = toolyard(&["run", "--report", "none"], message);
    let blocks = done.json()["content"].clone();
    assert_eq!(done.code, Some(1));
    assert_eq!(blocks[0]["content"], "before");
    assert!(blocks[1]["content"].as_str().unwrap().starts_with("Tool 'click' not found."));
    assert_eq!(blocks[2]["content"], "Not executed: an earlier action in this turn failed.");
    assert_eq!((&blocks[2]["is_error"], &blocks[2]["toolset_name"]), (&true.into(), &"browser".into()));
    assert!(blocks[3]["content"].as_str().unwrap().starts_with("call id 'a' is used twice"));
    assert_eq!(blocks[4]["content"], "after");
}
