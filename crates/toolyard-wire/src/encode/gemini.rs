//! Gemini: one user `Content` with a `functionResponse` per call.
//!
//! `response` is an object in which `output` means success and `error` failure. Images go in the response's
//! own `parts`, which the models from Gemini 3 on read.

use super::answer::Answer;
use serde_json::{Value, json};
use toolyard_core::Content;

pub(super) fn part(answer: &Answer<'_>) -> Value {
    let mut response = json!({"name": answer.origin.name.as_ref()});
    // Some versions of the API refuse an id that the model did not send.
    if let Some(id) = answer.original_id() {
        response["id"] = id.into();
    }
    response["response"] = match answer.output() {
        Some(output) => json!({"output": output.to_value()}),
        None => json!({"error": answer.text()}),
    };
    // The text of an error has it already.
    if let (Some(note), false) = (answer.note(), answer.is_error()) {
        response["response"]["note"] = note.into();
    }
    if let Some(parts) = answer.parts(is_image) {
        response["parts"] = parts.iter().filter_map(inline).collect();
    }
    json!({"functionResponse": response})
}

fn inline(part: &Content) -> Option<Value> {
    match part {
        Content::Image { media_type, data } if is_image(media_type) => {
            Some(json!({"inlineData": {"mimeType": media_type, "data": data}}))
        }
        _ => None,
    }
}

fn is_image(media_type: &str) -> bool {
    media_type.starts_with("image/")
}
