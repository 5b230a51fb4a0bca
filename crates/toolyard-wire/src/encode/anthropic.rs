//! Anthropic: one user message with every `tool_result`.

use super::answer::{Answer, part_text};
use crate::wording::NOT_EXECUTED;
use serde_json::{Value, json};
use toolyard_core::{Content, Reason};

pub(super) fn tool_result(answer: &Answer<'_>) -> Value {
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": answer.id(),
        "content": content(answer),
    });
    if answer.is_error() {
        block["is_error"] = true.into();
    }
    if let Some(toolset) = answer.echo("toolset_name") {
        block["toolset_name"] = toolset.clone();
    }
    block
}

fn content(answer: &Answer<'_>) -> Value {
    if was_skipped(answer) {
        return NOT_EXECUTED.into();
    }
    // With `is_error` the API takes only text, which holds here because an error has no parts.
    match answer.parts(carries) {
        Some(parts) => parts.iter().filter(|part| !is_blank(part)).map(block).collect(),
        None => answer.text().into(),
    }
}

/// Whether this is a toolset's call that did not run because an earlier one failed.
fn was_skipped(answer: &Answer<'_>) -> bool {
    let predecessor = answer.error().and_then(|error| error.reason) == Some(Reason::Predecessor);
    predecessor && answer.echo("toolset_name").is_some()
}

fn block(part: &Content) -> Value {
    match part {
        Content::Image { media_type, data } if carries(media_type) => {
            let source = json!({"type": "base64", "media_type": media_type, "data": data});
            json!({"type": "image", "source": source})
        }
        other => json!({"type": "text", "text": part_text(other)}),
    }
}

/// Whether this is a blank text block, which the API refuses.
fn is_blank(part: &Content) -> bool {
    matches!(part, Content::Text { text } if text.trim().is_empty())
}

fn carries(media_type: &str) -> bool {
    matches!(media_type, "image/jpeg" | "image/png" | "image/gif" | "image/webp")
}
