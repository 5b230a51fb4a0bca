//! The neutral form: `{"results":[…]}`, with everything that the other formats leave out.

use super::answer::Answer;
use crate::{
    outcome::{error_to_json, facts},
    wording::NO_RESULT,
};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value};
use std::borrow::Cow;
use toolyard_core::{CallError, Content, ErrorKind, ToolOutput};

/// A result, written field by field.
pub(super) struct Written<'a, 'b>(pub(super) &'b Answer<'a>);

pub(super) fn result(answer: &Answer<'_>) -> Value {
    // Texts, numbers and JSON, whose serialisation cannot fail.
    serde_json::to_value(Written(answer)).unwrap_or_default()
}

impl Serialize for Written<'_, '_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let answer = self.0;
        let mut fields = to.serialize_map(None)?;
        fields.serialize_entry("call_id", answer.id())?;
        if let Some(id) = &answer.call.provider_id {
            fields.serialize_entry("provider_id", id.as_ref())?;
        }
        fields.serialize_entry("name", answer.call.name.as_ref())?;
        fields.serialize_entry("status", if answer.is_error() { "error" } else { "ok" })?;
        if let Some(edited) = answer.edited() {
            fields.serialize_entry("edited", edited)?;
        }
        if !answer.is_recorded() {
            fields.serialize_entry("recorded", &false)?;
        }
        fields.serialize_entry("content", content(answer).as_ref())?;
        if let Some(value) = answer.output().and_then(ToolOutput::structured) {
            fields.serialize_entry("structured", value.as_ref())?;
        }
        if let Some(output) = answer.output() {
            for (key, value) in told(output) {
                fields.serialize_entry(&key, &value)?;
            }
        }
        if answer.is_error() {
            fields.serialize_entry("error", &error(answer))?;
        }
        if let Some(rest) = &answer.call.passthrough {
            fields.serialize_entry("passthrough", rest.as_ref())?;
        }
        fields.end()
    }
}

/// What a tool tells of its call.
fn told(output: &ToolOutput) -> Map<String, Value> {
    let mut fields = Map::new();
    facts(output, &mut |key: &str, value: Value| fields.insert(key.to_owned(), value));
    fields
}

/// The content that the model reads, as parts: those of the output after its note, or a single text part.
fn content<'a>(answer: &Answer<'a>) -> Cow<'a, [Content]> {
    let has_parts = |output: &ToolOutput| !output.has_structured() || !output.content.is_empty();
    match answer.all_parts().filter(|_| answer.output().is_some_and(has_parts)) {
        Some(all) => all,
        None => vec![Content::text(answer.text())].into(),
    }
}

fn error(answer: &Answer<'_>) -> Value {
    match answer.error() {
        Some(error) => error_to_json(error),
        None => error_to_json(&CallError::new(ErrorKind::Internal, NO_RESULT).not_started()),
    }
}
