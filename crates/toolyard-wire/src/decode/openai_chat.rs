//! OpenAI Chat Completions: `tool_calls` and `content` of `choices[0].message`.

use super::wrong_format;
use crate::{
    DecodeError, Format,
    draft::{Draft, arguments, custom_input, cut_arguments},
    found::Found,
    json::{self, Fields},
};
use serde_json::Value;
use std::fmt::Display;

/// The calls of a response, of a message, of a list of tool calls or of one tool call.
pub(super) fn calls(value: Value) -> Result<Found, DecodeError> {
    match value {
        Value::Object(mut fields) if fields.contains_key("choices") => {
            match json::take_first(&mut fields, "choices")? {
                Some(choice) => of_choice(json::object(choice, "choices[0]")?),
                None => Ok(Found::default()),
            }
        }
        Value::Object(fields) if fields.contains_key("role") || fields.contains_key("tool_calls") => {
            of_message(fields, "", false)
        }
        Value::Object(fields) if fields.contains_key("function") || fields.contains_key("custom") => {
            Ok(vec![tool_call(fields, false)].into())
        }
        Value::Array(items) => Ok(of_list(items, "", false)?.into()),
        other => Err(wrong_format(Format::OpenAiChat, &other)),
    }
}

fn of_choice(mut choice: Fields) -> Result<Found, DecodeError> {
    // The model ran out of tokens: its last call may have been cut off.
    let cut = json::text(&choice, "finish_reason") == "length";
    match json::take(&mut choice, "message") {
        None | Some(Value::Null) => Ok(Found::default()),
        Some(message) => {
            let message = json::object(message, "choices[0].message")?;
            of_message(message, "choices[0].message.", cut)
        }
    }
}

fn of_message(mut message: Fields, place: &str, cut: bool) -> Result<Found, DecodeError> {
    let place = format!("{place}tool_calls");
    let items = json::items(json::take(&mut message, "tool_calls"), &place)?;
    let mut found = Found::default();
    let content = json::take(&mut message, "content").filter(|content| !content.is_null());
    content.into_iter().for_each(|content| found.push_text(content));
    found.extend(of_list(items, &place, cut)?);
    Ok(found)
}

fn of_list(items: Vec<Value>, place: impl Display, cut: bool) -> Result<Vec<Draft>, DecodeError> {
    let last = items.len().saturating_sub(1);
    let draft = |(index, item)| {
        let fields = json::object(item, format_args!("{place}[{index}]"))?;
        Ok(tool_call(fields, cut && index == last))
    };
    items.into_iter().enumerate().map(draft).collect()
}

fn tool_call(mut fields: Fields, cut: bool) -> Draft {
    let id = json::take_id(&mut fields, "id");
    for known in ["type", "index"] {
        json::take(&mut fields, known);
    }
    if let Some(Value::Object(mut custom)) = json::take(&mut fields, "custom") {
        return Draft {
            id,
            name: json::take_text(&mut custom, "name").unwrap_or_default(),
            arguments: custom_input(json::take(&mut custom, "input")),
            custom: true,
            passthrough: fields,
            ..Draft::default()
        };
    }
    // Some servers leave the `function` object out and write its fields flat.
    let mut function = match json::take(&mut fields, "function") {
        Some(Value::Object(function)) => function,
        _ => std::mem::take(&mut fields),
    };
    let name = json::take_text(&mut function, "name").unwrap_or_default();
    let text = json::take(&mut function, "arguments");
    Draft {
        id,
        name,
        arguments: if cut { cut_arguments(text) } else { arguments(text) },
        passthrough: fields,
        ..Draft::default()
    }
}
