//! Extracts the results from a recorded next request, which the provider accepted as the answers to these calls.
//!
//! Each provider has them in a different place, and the recorded client has habits of its own, which are
//! normalised here one by one.

use serde_json::{Value, json};
use toolyard_wire::{Format, Message};

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// A result as the provider accepted it, and whether it was an error.
pub(super) struct Accepted {
    pub(super) result: Value,
    pub(super) failed: bool,
}

/// The results in the next request that answer these calls, in the request's order.
pub(super) fn results(message: &Message, next: &Value) -> Vec<Accepted> {
    let (count, first_id) = (message.calls().len(), message.calls()[0].id.as_str());
    match message.format() {
        Format::OpenAiChat => after_the_calls(&next["messages"], count, |message| {
            message["tool_calls"].as_array().is_some_and(|calls| calls.len() == count)
        }),
        Format::OpenAiResponses => response_items(&next["input"], message),
        Format::Anthropic => anthropic_blocks(&next["messages"], first_id),
        Format::Gemini => gemini_parts(&next["contents"]),
        Format::Neutral => unreachable!("nobody records the neutral format"),
    }
}

/// The `count` messages directly after the last one that `is_calls`.
fn after_the_calls(messages: &Value, count: usize, is_calls: impl Fn(&Value) -> bool) -> Vec<Accepted> {
    let messages = messages.as_array().unwrap();
    let at = messages.iter().rposition(is_calls).unwrap();
    let results = messages[at + 1..].iter().take(count).cloned();
    results.map(|result| Accepted { result, failed: false }).collect()
}

/// The last outputs in the input that answer these calls.
fn response_items(input: &Value, message: &Message) -> Vec<Accepted> {
    let mut found = Vec::new();
    for item in input.as_array().unwrap().iter().filter(|item| item["type"] == "function_call_output") {
        let mut result = item.clone();
        // Amazon Bedrock numbers the calls of every response anew from `call_0`. The recorded client made these
        // ids unique by prefixing the response's id, in the call it replayed as well as in the result. The
        // provider accepts any pair of equal ids; ours stays unchanged.
        if let Some((response, call)) = text(&item["call_id"]).split_once(':') {
            assert!(response.starts_with("resp_"));
            result["call_id"] = call.into();
        }
        if message.calls().iter().any(|call| call.id.as_str() == result["call_id"]) {
            found.push(Accepted { result, failed: false });
        }
    }
    // The ones before are results of earlier responses that used the same ids.
    found.split_off(found.len() - message.calls().len())
}

/// The results in the user message that answers the first call: it has all of them, before any text. It need not
/// be the last message, because a client may have added calls of its own after it.
fn anthropic_blocks(messages: &Value, first_id: &str) -> Vec<Accepted> {
    let blocks = |message: &Value| message["content"].as_array().cloned().unwrap_or_default();
    let is_result = |block: &Value| block["type"] == "tool_result";
    let answers = |block: &Value| block["tool_use_id"] == first_id;
    let mut messages = messages.as_array().unwrap().iter();
    let message = messages.find(|message| blocks(message).iter().any(answers)).unwrap();
    assert_eq!(message["role"], "user");
    let results = blocks(message).into_iter().take_while(is_result);
    results
        .map(|mut result| {
            let failed = result["is_error"] == true;
            // An absent `is_error` means `false`.
            if !failed {
                result.as_object_mut().unwrap().remove("is_error");
            }
            Accepted { result, failed }
        })
        .collect()
}

/// The results in the last content that has any.
fn gemini_parts(contents: &Value) -> Vec<Accepted> {
    let parts = |content: &Value| content["parts"].as_array().cloned().unwrap_or_default();
    // The client wrote some of them in snake case, which protobuf's JSON accepts too.
    let response = |part: &Value| part.get("functionResponse").or(part.get("function_response")).cloned();
    let contents = contents.as_array().unwrap();
    let last =
        contents.iter().rfind(|content| parts(content).iter().any(|part| response(part).is_some())).unwrap();
    assert_eq!(last["role"], "user");
    let responses = parts(last).into_iter().filter_map(|part| response(&part));
    responses
        .map(|mut response| {
            // The client invents ids if the model sent none; ours omits them, as `Message` documents.
            if response["id"].as_str().is_some_and(|id| id.starts_with("pyd_ai_")) {
                response.as_object_mut().unwrap().remove("id");
            }
            let failed = response["response"].get("error").is_some();
            Accepted { result: json!({"functionResponse": response}), failed }
        })
        .collect()
}

/// A result with its contents replaced: the remaining frame must be equal, field by field.
pub(super) fn frame(result: &Value, format: Format) -> Value {
    let mut frame = result.clone();
    let contents = match format {
        Format::OpenAiChat | Format::Anthropic => frame.get_mut("content"),
        Format::OpenAiResponses => frame.get_mut("output"),
        Format::Gemini => frame["functionResponse"].get_mut("response"),
        Format::Neutral => None,
    }
    .expect("every result has contents");
    // Contents are a text or a list of parts. Gemini's are an object: with `error` for a failure, and for a
    // success with `output` or, in the recorded client, with keys of its own, which means the same.
    *contents = match contents {
        Value::String(_) | Value::Array(_) => "contents".into(),
        Value::Object(fields) if fields.contains_key("error") => json!({"error": "contents"}),
        Value::Object(fields) if !fields.is_empty() => json!({"output": "contents"}),
        other => panic!("contents of another kind: {other}"),
    };
    frame
}
