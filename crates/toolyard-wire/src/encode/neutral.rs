//! The neutral form: `{"results":[…]}`, with everything that the other formats leave out.

use super::answer::Answer;
use crate::wording::NO_RESULT;
use serde_json::{Map, Value, json};
use toolyard_core::{CallError, Content, ErrorKind, ToolOutput};

pub(super) fn result(answer: &Answer<'_>) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("call_id", answer.id().into());
    if let Some(id) = &answer.call.provider_id {
        put("provider_id", id.as_ref().into());
    }
    put("name", answer.call.name.as_ref().into());
    put("status", if answer.is_error() { "error" } else { "ok" }.into());
    put("content", content(answer));
    if let Some(value) = answer.output().and_then(ToolOutput::structured) {
        put("structured", value.into_owned());
    }
    if let Some(output) = answer.output() {
        facts(output, &mut put);
    }
    if answer.is_error() {
        put("error", error(answer));
    }
    if let Some(rest) = &answer.call.passthrough {
        put("passthrough", Value::Object(rest.as_ref().clone()));
    }
    Value::Object(fields)
}

/// What the tool tells of the call, which is not for the model.
fn facts(output: &ToolOutput, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    if !output.files_modified().is_empty() {
        put("files_modified", output.files_modified().into());
    }
    if let Some(command) = output.command_executed() {
        put("command_executed", command.into());
    }
    if let Some(metadata) = output.all_metadata() {
        put("metadata", Value::Object(metadata.clone()));
    }
}

/// The content that the model reads, as parts: those of the output, or a single text part.
fn content(answer: &Answer<'_>) -> Value {
    match answer.output() {
        Some(output) if !output.has_structured() || !output.content.is_empty() => {
            output.content.iter().map(part).collect()
        }
        _ => json!([part(&Content::text(answer.text()))]),
    }
}

fn part(part: &Content) -> Value {
    // Content consists of strings alone, so its serialisation cannot fail.
    serde_json::to_value(part).unwrap_or_default()
}

fn error(answer: &Answer<'_>) -> Value {
    let missing = || CallError::new(ErrorKind::Internal, NO_RESULT).not_started();
    let error = answer.error().cloned().unwrap_or_else(missing);
    serde_json::to_value(error).unwrap_or_default()
}
