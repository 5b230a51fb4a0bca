//! Gemini `generateContent`: the `functionCall` and `text` parts of the first candidate.

use super::wrong_format;
use crate::{
    DecodeError, Format,
    draft::{Draft, arguments},
    found::Found,
    json::{self, Fields},
};
use serde_json::Value;

/// The calls of a response, of a `Content`, of a list of parts or of one part.
pub(super) fn calls(value: Value) -> Result<Found, DecodeError> {
    match value {
        Value::Object(fields) if fields.contains_key("parts") => of_content(fields, "parts"),
        Value::Object(fields)
            if fields.contains_key("functionCall") || fields.contains_key("function_call") =>
        {
            of_parts(vec![Value::Object(fields)], "parts")
        }
        Value::Object(mut fields) if is_envelope(&fields) => {
            match json::take_first(&mut fields, "candidates")? {
                Some(candidate) => of_candidate(json::object(candidate, "candidates[0]")?),
                None => Ok(Found::default()),
            }
        }
        Value::Array(parts) => of_parts(parts, ""),
        other => Err(wrong_format(Format::Gemini, &other)),
    }
}

/// Whether this is a whole response, which for a refused prompt has no candidates at all.
fn is_envelope(fields: &Fields) -> bool {
    let known = ["candidates", "promptFeedback", "usageMetadata", "text"];
    known.iter().any(|key| fields.contains_key(*key))
}

fn of_candidate(mut candidate: Fields) -> Result<Found, DecodeError> {
    match json::take(&mut candidate, "content") {
        // The model may stop without saying anything.
        None | Some(Value::Null) => Ok(Found::default()),
        Some(content) => {
            let content = json::object(content, "candidates[0].content")?;
            of_content(content, "candidates[0].content.parts")
        }
    }
}

fn of_content(mut content: Fields, place: &str) -> Result<Found, DecodeError> {
    of_parts(json::items(json::take(&mut content, "parts"), place)?, place)
}

fn of_parts(parts: Vec<Value>, place: &str) -> Result<Found, DecodeError> {
    let mut found = Found::default();
    for (index, part) in parts.into_iter().enumerate() {
        let mut part = json::object(part, format_args!("{place}[{index}]"))?;
        let Some(call) = json::take_either(&mut part, "functionCall", "function_call") else {
            text_part(part).into_iter().for_each(|part| found.push_text(part));
            continue;
        };
        let call = json::object(call, format_args!("{place}[{index}].functionCall"))?;
        found.push(function_call(call, part));
    }
    Ok(found)
}

/// The part, if it is text of the model. A summary of its thoughts is not.
pub(crate) fn text_part(part: Fields) -> Option<Value> {
    let is_text = part.get("text").is_some_and(Value::is_string);
    let is_thought = part.get("thought") == Some(&Value::Bool(true));
    // An empty part is kept for its signature alone.
    let is_empty = part.len() == 1 && json::text(&part, "text").is_empty();
    (is_text && !is_thought && !is_empty).then_some(Value::Object(part))
}

/// Reads a complete call. The other fields of its part (`thoughtSignature`) stay with it.
pub(crate) fn function_call(mut call: Fields, part: Fields) -> Draft {
    let mut draft = Draft {
        id: json::take_text(&mut call, "id"),
        name: json::take_text(&mut call, "name").unwrap_or_default(),
        arguments: arguments(json::take(&mut call, "args")),
        passthrough: part,
        ..Draft::default()
    };
    draft.passthrough.extend(call);
    draft
}
