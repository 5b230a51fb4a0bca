//! Bad input: one clear line, the right exit code, no lost result for the other calls.

use crate::{
    child::{Done, toolyard},
    place::dir,
};
use serde_json::{Value, json};
use std::fs;

fn run(input: &str) -> Done {
    toolyard(&["run", "--report", "none"], input)
}

/// Asserts that only this line is printed.
fn refused(input: &str, code: i32, line: &str) {
    let done = run(input);
    assert_eq!((done.code, done.stderr.as_str()), (Some(code), format!("toolyard: {line}\n").as_str()));
    assert_eq!(done.stdout, "");
}

/// Asserts that every call has a result, errors at these places, and this line about them.
fn answered(input: &Value, errors: &[usize], line: &str) {
    let done = run(&input.to_string());
    assert_eq!((done.code, done.stderr.as_str()), (Some(1), format!("toolyard: {line}\n").as_str()));
    let results = done.json()["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), input["calls"].as_array().unwrap().len());
    let failed = results.iter().enumerate().filter(|(_, result)| result["status"] == "error");
    assert_eq!(failed.map(|(place, _)| place).collect::<Vec<_>>(), errors);
}

fn echo(id: impl ToString) -> Value {
    json!({"call_id": id.to_string(), "name": "echo", "arguments": {"text": "x"}})
}

#[test]
fn not_json() {
    refused("hello", 3, "standard input: not JSON: expected value at line 1 column 1");
}

/// No answer arrived, as opposed to an answer without calls: a script must not take one for the other.
#[test]
fn blank_input_in_every_format() {
    let why = "the input is empty: expected a provider's response as JSON or as SSE text";
    let formats = ["auto", "neutral", "openai-chat", "openai-responses", "anthropic", "gemini", "episodes"];
    for (command, format) in ["run", "plan"].into_iter().flat_map(|command| formats.map(|it| (command, it))) {
        for blank in ["", " \n\n", "\u{feff}\n"] {
            let done = toolyard(&[command, "--from", format], blank);
            assert_eq!(
                (done.code, done.stdout.as_str()),
                (Some(3), ""),
                "{command} --from {format} {blank:?}"
            );
            assert!(done.stderr.ends_with(&format!(": {why}\n")), "{format} {blank:?}: {}", done.stderr);
        }
    }
    let done = toolyard(&["run", "--from", "anthropic"], ": ping\n\ndata:\n\n");
    assert_eq!((done.code, done.stdout.as_str()), (Some(3), ""), "{}", done.stderr);
}

#[test]
fn truncated_json() {
    let line = "standard input: the JSON ends too early, at line 2 column 8: the response was cut off, fetch it again";
    refused("{\n\"calls\":", 3, line);
}

#[test]
fn an_unknown_format() {
    let line = "standard input: unknown format: found an object with the keys hello; the formats are neutral, \
                openai-chat, openai-responses, anthropic and gemini, name one with --from";
    refused(r#"{"hello":1}"#, 3, line);
}

#[test]
fn nesting_without_end() {
    let line = "standard input: the JSON nests deeper than 127 levels at line 1 column 128: flatten it";
    refused(&"[".repeat(100_000), 3, line);
    let arguments = format!(r#"{{"text":{}"#, "[".repeat(100_000));
    let calls = json!({"calls": [{"call_id": "deep", "name": "echo", "arguments": arguments}, echo("b")]});
    let line = "invalid_input: deep 'echo': Invalid JSON: recursion limit exceeded at position 134";
    answered(&calls, &[0], line);
}

#[test]
fn a_response_without_tool_calls() {
    let done = run(r#"{"choices":[{"message":{"role":"assistant","content":"All done."}}]}"#);
    let line = "toolyard: standard input: no tool calls in this openai-chat response: the model is done, nothing \
                was run\n";
    assert_eq!((done.code, done.stderr.as_str(), done.json()), (Some(0), line, json!([])));
}

#[test]
fn a_batch_over_the_bound() {
    let calls: Vec<Value> = (0..10_002).map(echo).collect();
    let line = "overloaded: 10000 'echo' and 1 more: the batch has more than 10000 calls: send the rest in another \
                batch";
    answered(&json!({ "calls": calls }), &[10_000, 10_001], line);
}

#[test]
fn duplicate_ids() {
    let line = "invalid_input: a 'echo': call id 'a' is used twice in this batch; only the first call runs";
    answered(&json!({"calls": [echo("a"), echo("a"), echo("b")]}), &[1], line);
}

#[test]
fn missing_and_null_arguments() {
    let line = "invalid_input: a 'echo' and 1 more: Arguments of 'echo' do not fit its schema: \"text\" is a required \
                property";
    let missing = json!({"call_id": "a", "name": "echo"});
    let nothing = json!({"call_id": "b", "name": "echo", "arguments": null});
    answered(&json!({"calls": [missing, nothing, echo("c")]}), &[0, 1], line);
}

/// V3: a limit that leaves no time is an error of its call, one that is not a number is an error of the batch.
#[test]
fn a_time_limit_that_is_none() {
    let limited = |limit: Value| {
        let mut call = echo("a");
        call["timeout_ms"] = limit;
        json!({"calls": [call, echo("b")]})
    };
    let done = run(&limited(json!(0)).to_string());
    let results = done.json()["results"].clone();
    assert_eq!(
        (&results[0]["error"]["code"], &results[1]["status"]),
        (&json!("invalid_input"), &json!("ok"))
    );
    let line = "standard input: calls[0].timeout_ms: expected a whole number of milliseconds, found a number";
    refused(&limited(json!(-5)).to_string(), 3, line);
}

#[test]
fn broken_arguments() {
    let line = "invalid_input: a 'echo': Invalid JSON: expected value at position 8";
    let broken = json!({"call_id": "a", "name": "echo", "arguments": "{\"text\":}"});
    answered(&json!({"calls": [broken, echo("b")]}), &[0], line);
}

#[test]
fn a_name_that_is_not_registered() {
    let line = "not_found: a 'rm': Tool 'rm' not found. Available: [echo, list_dir, patch_file, read_file, write_file]";
    answered(&json!({"calls": [{"call_id": "a", "name": "rm"}, echo("b")]}), &[0], line);
}

#[test]
fn a_configuration_with_a_wrong_key() {
    let dir = dir("wrong-key");
    let file = dir.join("toolyard.toml");
    fs::write(&file, "[pools]\nraed = 3\n").unwrap();
    let file = file.to_str().unwrap();
    for command in ["run", "plan", "tools", "check"] {
        let done = toolyard(&[command, "--config", file], r#"{"calls":[]}"#);
        let line = format!("toolyard: {file} line 2: unknown key 'raed' in [pools]; did you mean 'read'?\n");
        assert_eq!((done.code, done.stderr), (Some(2), line), "{command}");
    }
}

/// RT-1, CB-2, RT-10, RT-11: settings that no engine could keep are configuration errors like any other.
#[test]
fn a_configuration_with_a_setting_that_makes_no_sense() {
    let file = dir("senseless").join("toolyard.toml");
    let path = file.to_str().unwrap();
    let check = |text: &str, what: &str| {
        fs::write(&file, text).unwrap();
        for command in ["run", "check"] {
            let done = toolyard(&[command, "--config", path], r#"{"calls":[]}"#);
            let line = format!("toolyard: {path} line 2: {what}\n");
            assert_eq!((done.code, done.stderr, done.stdout.as_str()), (Some(2), line, ""), "{command}");
        }
    };
    check("[retry]\nfactor = nan", "[retry] factor must be a number from 1, not NaN");
    check("[breaker]\nopen_for = \"0s\"", "[breaker] open_for: '0s' must be longer than zero");
    check("[budget]\nturn = -1", "[budget] turn must be a whole number from 0, not -1");
    let rate = "a rate needs at least one attempt, a period above zero and a burst of at least one";
    check("[tools.echo]\nrate = \"0/s\"", &format!("[tools.\"echo\"] rate: {rate}"));
}

/// Asserts that every command that reads a configuration refuses this one.
fn no_configuration(file: &str, what: &str) {
    for command in ["run", "plan", "tools", "check"] {
        let done = toolyard(&[command, "--config", file], r#"{"calls":[]}"#);
        assert_eq!((done.code, done.stderr), (Some(2), format!("toolyard: {file}: {what}\n")), "{command}");
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn a_configuration_that_is_no_regular_file() {
    let what = "not a regular file: a configuration is a text file";
    no_configuration(dir("config-dir").to_str().unwrap(), what);
    if cfg!(unix) {
        no_configuration("/dev/zero", what);
    }
}

#[test]
fn a_configuration_without_end_or_text() {
    let file = dir("config-long").join("toolyard.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "#".repeat((1 << 20) + 1)).unwrap();
    no_configuration(path, "longer than 1048576 bytes, the limit for a configuration");
    fs::write(&file, b"# \xff").unwrap();
    no_configuration(path, "byte 2 is not valid UTF-8: save the file as UTF-8");
    fs::write(&file, "#".repeat(1 << 20)).unwrap();
    assert_eq!(toolyard(&["check", "--config", path], "").code, Some(0));
}

#[test]
fn wrong_usage() {
    let check = |args: &[&str], code: i32, line: &str| {
        let done = toolyard(args, "{}");
        assert_eq!((done.code, done.stderr), (Some(code), format!("toolyard: {line}\n")), "{args:?}");
    };
    check(
        &["run", "--from", "xml"],
        2,
        "invalid value 'xml' for '--from <FORMAT>' [possible values: auto, neutral, episodes, openai-chat, \
         openai-responses, anthropic, gemini]; see toolyard --help",
    );
    check(
        &["run", "--max-in-flight", "0"],
        2,
        "invalid value '0' for '--max-in-flight <N>': must be at least 1; see toolyard --help",
    );
    check(
        &["bench", "--rounds", "0"],
        2,
        "invalid value '0' for '--rounds <N>': must be at least 1; see toolyard --help",
    );
    check(
        &["bench", "--calls", "1,0"],
        2,
        "invalid value '0' for '--calls <N>': must be at least 1; see toolyard --help",
    );
    check(
        &["run", "no-such-file.json"],
        3,
        "no-such-file.json: cannot be read: No such file or directory (os error 2)",
    );
    check(
        &["run", "--workspace", "no-such-dir"],
        2,
        "cannot open the workspace root 'no-such-dir': No such file or directory (os error 2); name a directory with \
         --workspace or [workspace] root",
    );
}

#[test]
fn a_stream_that_breaks_off_runs_what_had_arrived() {
    let event = |value: Value| format!("data: {value}\n\n");
    let stream = event(
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "echo", "input": {}}}),
    ) + &event(
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"text\":\"x\"}"}}),
    ) + &event(json!({"type": "content_block_stop", "index": 0}))
        + &event(
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "b", "name": "echo", "input": {}}}),
        )
        + "data: {\"type\":\"content_block_delta\",\"ind";
    let done = run(&stream);
    let content = done.json()["content"].clone();
    assert_eq!(
        (done.code, &content[0]["content"], &content[1]["is_error"]),
        (Some(1), &json!("x"), &json!(true))
    );
    assert!(
        done.stderr.starts_with("toolyard: standard input: the anthropic stream broke off inside a call")
    );
}
