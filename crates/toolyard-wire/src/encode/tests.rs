use super::*;
use crate::{NameMap, NameRule, decode, wording};
use serde_json::json;
use std::time::Duration;
use toolyard_core::{Call, CallError, Content, ErrorKind, Reason, RetryStopped, Routing, ToolOutput};

fn ok(call: &Call, output: impl Into<ToolOutput>) -> Outcome {
    Outcome::new(call, Routing::Read, Ok(output.into()))
}

fn failed(call: &Call, error: CallError) -> Outcome {
    Outcome::new(call, Routing::Read, Err(error))
}

/// Decodes a message and encodes the outcome of its first call in the format `to`. Written one by one, the results are
/// the same.
fn result(text: &str, to: Format, outcome: impl Fn(&Call) -> Outcome) -> Value {
    let message = decode(text, None).unwrap();
    let outcomes = [outcome(&message.calls()[0])];
    let encoded = encode(&message, &outcomes, to);
    let results = Results::new(&message, &outcomes, to);
    assert_eq!(serde_json::to_string(&results).unwrap(), encoded.to_string());
    assert_eq!(serde_json::to_string_pretty(&results).unwrap(), format!("{encoded:#}"));
    encoded
}

/// A message without calls, and one with several, take the form of every format, also when written one by one.
#[test]
fn results_are_the_same_when_written_one_by_one() {
    let several =
        r#"{"calls":[{"call_id":"a","name":"f"},{"call_id":"b","name":"f"},{"call_id":"c","name":"f"}]}"#;
    for text in [r#"{"calls":[]}"#, several] {
        let message = decode(text, None).unwrap();
        let outcomes: Vec<Outcome> = message.calls().iter().map(|call| ok(call, "done")).skip(1).collect();
        for to in
            [Format::Neutral, Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic, Format::Gemini]
        {
            let whole = format!("{:#}", encode(&message, &outcomes, to));
            let results = Results::new(&message, &outcomes, to);
            assert_eq!(serde_json::to_string_pretty(&results).unwrap(), whole, "{to}");
        }
    }
}

const NEUTRAL: &str =
    r#"{"calls":[{"call_id":"c1","provider_id":"p1","name":"f","arguments":{},"colour":"red"}]}"#;

fn image() -> ToolOutput {
    ToolOutput::parts(vec![
        Content::text("a cat"),
        Content::Image { media_type: "image/png".to_owned(), data: "AAAA".to_owned() },
    ])
}

#[test]
fn text_takes_the_form_of_every_format() {
    let check = |to, expect: Value| assert_eq!(result(NEUTRAL, to, |call| ok(call, "done")), expect, "{to}");
    check(Format::OpenAiChat, json!([{"role": "tool", "tool_call_id": "c1", "content": "done"}]));
    check(
        Format::OpenAiResponses,
        json!([{"type": "function_call_output", "call_id": "c1", "output": "done"}]),
    );
    check(
        Format::Anthropic,
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "done"}]}),
    );
    check(
        Format::Gemini,
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "f", "id": "c1", "response": {"output": "done"}}}]}),
    );
    check(
        Format::Neutral,
        json!({"results": [{
            "call_id": "c1", "provider_id": "p1", "name": "f", "status": "ok",
            "content": [{"type": "text", "text": "done"}], "passthrough": {"colour": "red"}}]}),
    );
}

/// The neutral form has what the tool tells of its call; the model of no provider reads it.
#[test]
fn what_a_tool_tells_of_its_call_is_in_the_neutral_form() {
    let told = |call: &Call| {
        let output = ToolOutput::text("done").with_file_modified("a.md").with_command_executed("make all");
        ok(call, output.with_metadata("exit_code", 0))
    };
    let neutral = &result(NEUTRAL, Format::Neutral, told)["results"][0];
    assert_eq!(neutral["files_modified"], json!(["a.md"]));
    assert_eq!(
        (&neutral["command_executed"], &neutral["metadata"]),
        (&json!("make all"), &json!({"exit_code": 0}))
    );
    for to in [Format::OpenAiChat, Format::OpenAiResponses, Format::Anthropic, Format::Gemini] {
        assert!(!result(NEUTRAL, to, told).to_string().contains("make all"), "{to}");
    }
}

/// V5, RT-8: the neutral form tells what was tried, why it was not retried, and when to try again.
#[test]
fn a_neutral_error_reports_its_attempts() {
    let transient = CallError::new(ErrorKind::Transient, "HTTP 503").after_attempts(2);
    let mut open =
        CallError::new(ErrorKind::CircuitOpen, "ask again in 28s").after_error(Box::new(transient));
    open.retry_after = Some(Duration::from_secs(28));
    let error = |error: CallError| {
        let encoded = result(NEUTRAL, Format::Neutral, |call| failed(call, error.clone()));
        encoded["results"][0]["error"].clone()
    };
    let reported = error(open);
    assert_eq!((&reported["code"], &reported["attempts"]), (&json!("circuit_open"), &json!(2)));
    assert_eq!(
        (&reported["retry_after_ms"], &reported["last_error"]["code"]),
        (&json!(28_000), &json!("transient"))
    );
    let stopped =
        CallError::new(ErrorKind::Timeout, "too long").with_retry_stopped(Some(RetryStopped::Budget));
    assert_eq!(error(stopped)["retry_stopped"], "budget");
}

#[test]
fn an_error_takes_the_form_of_every_format() {
    let error = || CallError::new(ErrorKind::ExecutionError, "no such file");
    let encoded = |to| result(NEUTRAL, to, |call| failed(call, error()));
    assert_eq!(encoded(Format::OpenAiChat)[0]["content"], "no such file");
    assert_eq!(encoded(Format::OpenAiResponses)[0]["output"], "no such file");
    assert_eq!(encoded(Format::Anthropic)["content"][0]["is_error"], true);
    let response = &encoded(Format::Gemini)["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"error": "no such file"}));
    let neutral = &encoded(Format::Neutral)["results"][0];
    assert_eq!(neutral["status"], "error");
    assert_eq!(neutral["error"]["code"], "execution_error");
    assert_eq!(neutral["content"], json!([{"type": "text", "text": "no such file"}]));
}

#[test]
fn an_image_goes_along_where_the_format_carries_it() {
    let encoded = |to| result(NEUTRAL, to, |call| ok(call, image()));
    assert_eq!(encoded(Format::OpenAiChat)[0]["content"], "a cat\n[image image/png]");
    assert_eq!(
        encoded(Format::OpenAiResponses)[0]["output"],
        json!([{"type": "input_text", "text": "a cat"},
               {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}])
    );
    assert_eq!(
        encoded(Format::Anthropic)["content"][0]["content"],
        json!([{"type": "text", "text": "a cat"},
               {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}])
    );
    assert_eq!(
        encoded(Format::Gemini)["parts"][0]["functionResponse"]["parts"],
        json!([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}])
    );
    assert_eq!(encoded(Format::Neutral)["results"][0]["content"][1]["media_type"], "image/png");
}

#[test]
fn data_stays_data_where_the_format_has_a_place_for_it() {
    let encoded = |to| result(NEUTRAL, to, |call| ok(call, json!({"files": 12})));
    assert_eq!(encoded(Format::OpenAiChat)[0]["content"], r#"{"files":12}"#);
    let response = &encoded(Format::Gemini)["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"output": {"files": 12}}));
    let neutral = &encoded(Format::Neutral)["results"][0];
    assert_eq!(neutral["structured"], json!({"files": 12}));
    assert_eq!(neutral["content"][0]["text"], r#"{"files":12}"#);
}

#[test]
fn a_call_without_an_id_gets_none_back_in_gemini_and_the_made_one_elsewhere() {
    let text = r#"{"parts":[{"functionCall":{"name":"f"}}]}"#;
    let gemini = result(text, Format::Gemini, |call| ok(call, "x"));
    assert_eq!(gemini["parts"][0]["functionResponse"].get("id"), None);
    let chat = result(text, Format::OpenAiChat, |call| ok(call, "x"));
    assert_eq!(chat[0]["tool_call_id"], "call_1");
}

/// The provider matches a result with the id in its own message, and refuses any other.
#[test]
fn a_call_with_an_empty_id_is_answered_under_it_and_in_another_format_under_the_made_one() {
    let chat = r#"{"tool_calls":[{"id":"","function":{"name":"f"}}]}"#;
    assert_eq!(result(chat, Format::OpenAiChat, |call| ok(call, "x"))[0]["tool_call_id"], "");
    let blocks = result(chat, Format::Anthropic, |call| ok(call, "x"));
    assert_eq!(blocks["content"][0]["tool_use_id"], "call_1");
    let item = r#"{"type":"function_call","call_id":"","name":"f"}"#;
    assert_eq!(result(item, Format::OpenAiResponses, |call| ok(call, "x"))[0]["call_id"], "");
    let block = r#"{"type":"tool_use","id":"","name":"f"}"#;
    let blocks = result(block, Format::Anthropic, |call| ok(call, "x"));
    assert_eq!(blocks["content"][0]["tool_use_id"], "");
}

#[test]
fn a_custom_tool_is_answered_as_one() {
    let text = r#"[{"type":"custom_tool_call","call_id":"c","name":"sql","input":"x"}]"#;
    let item = result(text, Format::OpenAiResponses, |call| ok(call, "1"));
    assert_eq!(item, json!([{"type": "custom_tool_call_output", "call_id": "c", "output": "1"}]));
}

#[test]
fn the_caller_is_echoed_to_responses_and_to_no_other() {
    let text =
        r#"[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","caller":{"type":"direct"}}]"#;
    let item = result(text, Format::OpenAiResponses, |call| ok(call, "1"));
    assert_eq!(item[0]["caller"], json!({"type": "direct"}));

    let block = r#"[{"type":"tool_use","id":"c","name":"f","caller":{"type":"direct"}}]"#;
    for to in [Format::Anthropic, Format::OpenAiResponses] {
        let encoded = result(block, to, |call| ok(call, "1")).to_string();
        assert!(!encoded.contains("caller"), "{encoded}");
    }
}

#[test]
fn a_toolset_is_echoed_and_its_skipped_calls_are_answered_in_the_provider_s_words() {
    let text = r#"[{"type":"tool_use","id":"c","name":"click","input":{},"toolset_name":"browser"}]"#;
    let skipped = |call: &Call| {
        let error = CallError::new(ErrorKind::Cancelled, "skipped").with_reason(Reason::Predecessor);
        failed(call, error)
    };
    let message = result(text, Format::Anthropic, skipped);
    assert_eq!(
        message["content"][0],
        json!({"type": "tool_result", "tool_use_id": "c", "content": wording::NOT_EXECUTED,
               "is_error": true, "toolset_name": "browser"})
    );
}

#[test]
fn every_call_is_answered_in_call_order_whatever_the_outcomes_are() {
    let text =
        r#"{"calls":[{"call_id":"a","name":"f"},{"call_id":"b","name":"f"},{"call_id":"c","name":"f"}]}"#;
    let message = decode(text, None).unwrap();
    let [a, b, _] = message.calls() else { panic!("three calls") };
    let outcomes = [ok(b, "second"), ok(a, "first")];
    let blocks = encode(&message, &outcomes, Format::Anthropic)["content"].take();
    assert_eq!(blocks[0]["content"], "first");
    assert_eq!(blocks[1]["content"], "second");
    assert_eq!(blocks[2]["content"], wording::NO_RESULT);
    assert_eq!(blocks[2]["is_error"], true);
    let neutral = encode(&message, &outcomes, Format::Neutral);
    assert_eq!(neutral["results"][2]["error"]["code"], "internal");
}

#[test]
fn calls_that_share_an_id_each_get_their_own_outcome() {
    let message =
        decode(r#"{"calls":[{"call_id":"a","name":"f"},{"call_id":"a","name":"f"}]}"#, None).unwrap();
    let twice = CallError::new(ErrorKind::InvalidInput, "duplicate id");
    let outcomes = [ok(&message.calls()[0], "ran"), failed(&message.calls()[1], twice)];
    let blocks = encode(&message, &outcomes, Format::Anthropic)["content"].take();
    assert_eq!(blocks[0]["content"], "ran");
    assert_eq!(blocks[1]["is_error"], true);
}

#[test]
fn a_result_goes_back_under_the_name_that_the_provider_knows() {
    let names = NameMap::new(NameRule::Plain, ["fs.read"]);
    let message = decode(r#"{"parts":[{"functionCall":{"name":"fs_read"}}]}"#, None).unwrap();
    let message = message.with_original_names(&names);
    assert_eq!(message.calls()[0].name.as_ref(), "fs.read");
    let outcome = ok(&message.calls()[0], "x");
    let content = encode(&message, &[outcome], Format::Gemini);
    assert_eq!(content["parts"][0]["functionResponse"]["name"], "fs_read");
}

#[test]
fn anthropic_gets_no_blank_text_and_no_image_it_does_not_know() {
    let parts = || {
        ToolOutput::parts(vec![
            Content::text(" "),
            Content::Image { media_type: "image/png".to_owned(), data: "AA".to_owned() },
            Content::Image { media_type: "image/tiff".to_owned(), data: "BB".to_owned() },
        ])
    };
    let message = result(NEUTRAL, Format::Anthropic, |call| ok(call, parts()));
    let blocks = &message["content"][0]["content"];
    assert_eq!(blocks[0]["type"], "image");
    assert_eq!(blocks[1], json!({"type": "text", "text": "[image image/tiff]"}));
}

/// SM-5: in every format the model is told, before the result, that the arguments of its call were changed.
#[test]
fn changed_arguments_are_told_before_the_result() {
    let note = r#"The arguments of this call were changed by the person who approved it: {"path":"b"}"#;
    let edited = |output: ToolOutput| {
        move |call: &Call| {
            let mut outcome = ok(call, output.clone());
            outcome.set_edited(Some(json!({"path": "b"}).into()));
            outcome
        }
    };
    let (text, parts) = (edited("done".into()), edited(image()));
    let both = format!("{note}\ndone");
    assert_eq!(result(NEUTRAL, Format::OpenAiChat, &text)[0]["content"], both);
    assert_eq!(result(NEUTRAL, Format::OpenAiResponses, &text)[0]["output"], both);
    assert_eq!(result(NEUTRAL, Format::Anthropic, &text)["content"][0]["content"], both);
    let gemini = result(NEUTRAL, Format::Gemini, &text);
    let response = &gemini["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"output": "done", "note": note}));
    let neutral = result(NEUTRAL, Format::Neutral, &text);
    let neutral = &neutral["results"][0];
    assert_eq!(neutral["edited"], json!({"path": "b"}));
    let told = json!({"type": "text", "text": note});
    assert_eq!(neutral["content"], json!([told, {"type": "text", "text": "done"}]));

    assert_eq!(result(NEUTRAL, Format::Anthropic, &parts)["content"][0]["content"][0], told);
    let responses = result(NEUTRAL, Format::OpenAiResponses, &parts);
    assert_eq!(responses[0]["output"][0], json!({"type": "input_text", "text": note}));
    assert_eq!(responses[0]["output"].as_array().unwrap().len(), 3);

    let refused = |call: &Call| {
        let mut outcome = failed(call, CallError::new(ErrorKind::ExecutionError, "no"));
        outcome.set_edited(Some(json!({"path": "b"}).into()));
        outcome
    };
    let gemini = result(NEUTRAL, Format::Gemini, refused);
    let response = &gemini["parts"][0]["functionResponse"]["response"];
    assert_eq!(*response, json!({"error": format!("{note}\nno")}));
    assert_eq!(result(NEUTRAL, Format::OpenAiChat, refused)[0]["content"], format!("{note}\nno"));
}

/// SM-4, SM-10: the neutral form says of a result that it is not durable, and of a suspended call which turn to resume.
#[test]
fn what_a_recorder_made_of_a_result_is_told() {
    let suspended = |call: &Call| {
        failed(call, CallError::new(ErrorKind::ShuttingDown, "the engine is shutting down").suspended_in(7))
    };
    let neutral = result(NEUTRAL, Format::Neutral, suspended);
    let neutral = &neutral["results"][0];
    assert_eq!((&neutral["error"]["suspended"], &neutral["error"]["retryable"]), (&json!(7), &json!(false)));
    assert_eq!(neutral.get("recorded"), None);
    let unrecorded = |call: &Call| {
        let mut outcome = ok(call, "done");
        outcome.recorded = false;
        outcome
    };
    assert_eq!(result(NEUTRAL, Format::Neutral, unrecorded)["results"][0]["recorded"], json!(false));
}
