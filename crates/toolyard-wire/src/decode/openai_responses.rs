//! OpenAI Responses: the items of `output`.

use super::wrong_format;
use crate::{
    DecodeError, Format,
    draft::{Draft, arguments, custom_input, cut_arguments, cut_custom_input},
    found::Found,
    json::{self, Fields},
};
use serde_json::Value;

/// The calls of a response, of an `output` array or of one item.
pub(super) fn calls(value: Value) -> Result<Found, DecodeError> {
    match value {
        Value::Object(fields) if fields.contains_key("output") && !fields.contains_key("call_id") => {
            output_calls(fields)
        }
        Value::Object(fields) if fields.contains_key("type") => of_output(vec![Value::Object(fields)]),
        Value::Array(items) => of_output(items),
        other => Err(wrong_format(Format::OpenAiResponses, &other)),
    }
}

/// The calls and texts of a response object.
pub(crate) fn output_calls(mut response: Fields) -> Result<Found, DecodeError> {
    of_output(json::items(json::take(&mut response, "output"), "output")?)
}

fn of_output(items: Vec<Value>) -> Result<Found, DecodeError> {
    let mut found = Found::default();
    for (index, item) in items.into_iter().enumerate() {
        let fields = json::object(item, format_args!("output[{index}]"))?;
        if is_text(&fields) {
            found.push_text(Value::Object(fields));
        } else {
            found.extend(output_item(fields));
        }
    }
    Ok(found)
}

/// Whether an item is a call for us to run. Other items are run by the provider, or are not calls.
pub(crate) fn is_call(item: &Fields) -> bool {
    matches!(json::text(item, "type"), "function_call" | "custom_tool_call")
}

/// Whether an item is text of the model.
pub(crate) fn is_text(item: &Fields) -> bool {
    json::text(item, "type") == "message" && json::text(item, "role") != "user"
}

/// Reads an item as a call, if it is one for us to run.
pub(crate) fn output_item(mut item: Fields) -> Option<Draft> {
    if !is_call(&item) {
        return None;
    }
    let custom = json::text(&item, "type") == "custom_tool_call";
    let cut = json::text(&item, "status") == "incomplete";
    json::take(&mut item, "type");
    let arguments = match (custom, cut) {
        (true, true) => cut_custom_input(&json::take_text(&mut item, "input").unwrap_or_default()),
        (true, false) => custom_input(json::take(&mut item, "input")),
        (false, true) => cut_arguments(json::take(&mut item, "arguments")),
        (false, false) => arguments(json::take(&mut item, "arguments")),
    };
    Some(Draft {
        id: json::take_id(&mut item, "call_id"),
        provider_id: json::take_text(&mut item, "id"),
        name: json::take_text(&mut item, "name").unwrap_or_default(),
        arguments,
        custom,
        passthrough: item,
        ..Draft::default()
    })
}
