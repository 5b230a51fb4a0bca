//! The neutral form: `{"results":[…]}`, with everything that the other formats leave out.

use super::answer::Answer;
use crate::{
    outcome::{error_to_json, facts, parts},
    wording::NO_RESULT,
};
use serde_json::{Map, Value};
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
    if let Some(edited) = answer.edited() {
        put("edited", edited.clone());
    }
    if !answer.is_recorded() {
        put("recorded", false.into());
    }
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

/// The content that the model reads, as parts: those of the output after its note, or a single text part.
fn content(answer: &Answer<'_>) -> Value {
    let has_parts = |output: &ToolOutput| !output.has_structured() || !output.content.is_empty();
    match answer.all_parts().filter(|_| answer.output().is_some_and(has_parts)) {
        Some(all) => parts(&all),
        None => parts(&[Content::text(answer.text())]),
    }
}

fn error(answer: &Answer<'_>) -> Value {
    match answer.error() {
        Some(error) => error_to_json(error),
        None => error_to_json(&CallError::new(ErrorKind::Internal, NO_RESULT).not_started()),
    }
}
