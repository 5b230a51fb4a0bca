//! OpenAI Responses: an output item per call. It has no error flag.

use super::answer::{Answer, data_url, part_text};
use serde_json::{Value, json};
use toolyard_core::Content;

pub(super) fn item(answer: &Answer<'_>) -> Value {
    let kind = if answer.origin.custom { "custom_tool_call_output" } else { "function_call_output" };
    let mut item = json!({
        "type": kind,
        "call_id": answer.id(),
        "output": output(answer),
    });
    if let Some(caller) = answer.echo("caller") {
        item["caller"] = caller.clone();
    }
    item
}

fn output(answer: &Answer<'_>) -> Value {
    match answer.parts(is_image) {
        Some(parts) => parts.iter().map(part).collect(),
        None => answer.text().into(),
    }
}

fn part(part: &Content) -> Value {
    match part {
        Content::Image { media_type, data } if is_image(media_type) => {
            json!({"type": "input_image", "image_url": data_url(media_type, data)})
        }
        other => json!({"type": "input_text", "text": part_text(other)}),
    }
}

fn is_image(media_type: &str) -> bool {
    media_type.starts_with("image/")
}
