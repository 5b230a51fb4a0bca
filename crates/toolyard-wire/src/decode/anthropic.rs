//! Anthropic Messages: the `tool_use` and `text` blocks of `content`.

use super::wrong_format;
use crate::{
    DecodeError, Format,
    draft::{Draft, arguments, cut_arguments},
    found::Found,
    json::{self, Fields},
};
use serde_json::{Value, json};

/// The calls of a message, of a list of content blocks or of one block.
pub(super) fn calls(value: Value) -> Result<Found, DecodeError> {
    match value {
        Value::Object(mut fields)
            if fields.contains_key("content") && !fields.contains_key("tool_use_id") =>
        {
            // The model ran out of tokens: its last block may have been cut off.
            let cut = json::text(&fields, "stop_reason") == "max_tokens";
            match json::take(&mut fields, "content") {
                Some(Value::String(text)) => of_blocks(vec![json!({"type": "text", "text": text})], false),
                content => of_blocks(json::items(content, "content")?, cut),
            }
        }
        Value::Object(fields) if fields.contains_key("type") => of_blocks(vec![Value::Object(fields)], false),
        Value::Array(blocks) => of_blocks(blocks, false),
        other => Err(wrong_format(Format::Anthropic, &other)),
    }
}

fn of_blocks(blocks: Vec<Value>, cut: bool) -> Result<Found, DecodeError> {
    let last = blocks.len().saturating_sub(1);
    let mut found = Found::default();
    for (index, block) in blocks.into_iter().enumerate() {
        let fields = json::object(block, format_args!("content[{index}]"))?;
        if is_text(&fields) {
            found.push_text(Value::Object(fields));
        } else {
            found.extend(tool_use(fields, cut && index == last));
        }
    }
    Ok(found)
}

/// Whether a block is text of the model.
pub(crate) fn is_text(block: &Fields) -> bool {
    json::text(block, "type") == "text"
}

/// Reads a `tool_use` block as a call; `None` for others. The provider itself runs `server_tool_use`,
/// `mcp_tool_use` and the like.
pub(crate) fn tool_use(mut block: Fields, cut: bool) -> Option<Draft> {
    if json::text(&block, "type") != "tool_use" {
        return None;
    }
    json::take(&mut block, "type");
    let input = json::take(&mut block, "input");
    Some(Draft {
        id: json::take_id(&mut block, "id"),
        name: json::take_text(&mut block, "name").unwrap_or_default(),
        arguments: if cut { cut_arguments(input) } else { arguments(input) },
        passthrough: block,
        ..Draft::default()
    })
}
