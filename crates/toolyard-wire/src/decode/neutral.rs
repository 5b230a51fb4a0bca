//! The neutral form: `{"calls":[{"call_id","provider_id"?,"name","arguments","idempotency_key"?,"timeout_ms"?}…], "text"?}`.

use super::wrong_format;
use crate::{
    DecodeError, Format,
    draft::{Draft, arguments},
    found::Found,
    json::{self, Fields},
    whole_number,
};
use serde_json::Value;
use std::{fmt::Display, time::Duration};

/// The calls of a batch, of a list of calls or of one call.
pub(crate) fn calls(value: Value) -> Result<Found, DecodeError> {
    match value {
        Value::Object(mut fields) if fields.contains_key("calls") => {
            let mut found = Found::default();
            // The text has no place among the calls here, and stands before them.
            let text = json::take(&mut fields, "text").filter(|text| text.is_string());
            text.into_iter().for_each(|text| found.push_text(text));
            found.extend(list(json::items(json::take(&mut fields, "calls"), "calls")?, "calls")?);
            Ok(found)
        }
        Value::Object(fields) if fields.contains_key("name") => Ok(vec![call(fields, "call")?].into()),
        Value::Array(items) => Ok(list(items, "")?.into()),
        other => Err(wrong_format(Format::Neutral, &other)),
    }
}

fn list(items: Vec<Value>, place: &str) -> Result<Vec<Draft>, DecodeError> {
    let draft = |(index, item)| {
        let place = format!("{place}[{index}]");
        call(json::object(item, &place)?, &place)
    };
    items.into_iter().enumerate().map(draft).collect()
}

/// Reads one call. A person or a program wrote its frame, so a key or timeout of the wrong type is an error;
/// the arguments, which a model wrote, never are.
pub(crate) fn call(mut fields: Fields, place: impl Display) -> Result<Draft, DecodeError> {
    let mut draft = Draft {
        id: json::take_id(&mut fields, "call_id"),
        provider_id: json::take_text(&mut fields, "provider_id"),
        name: json::take_text(&mut fields, "name").unwrap_or_default(),
        arguments: arguments(json::take(&mut fields, "arguments")),
        idempotency_key: key(&mut fields, &place)?,
        timeout: timeout(&mut fields, &place)?,
        ..Draft::default()
    };
    if let Some(Value::Object(passthrough)) = fields.get_mut("passthrough") {
        draft.passthrough = std::mem::take(passthrough);
        json::take(&mut fields, "passthrough");
    }
    draft.passthrough.extend(fields);
    Ok(draft)
}

fn timeout(fields: &mut Fields, place: impl Display) -> Result<Option<Duration>, DecodeError> {
    match json::take(fields, "timeout_ms") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match whole_number(&value) {
            Some(millis) => Ok(Some(Duration::from_millis(millis))),
            None => {
                let place = format_args!("{place}.timeout_ms");
                Err(json::shape(place, "a whole number of milliseconds", &value))
            }
        },
    }
}

/// The idempotency key. An empty one is kept, so that the engine refuses the call rather than running it without
/// the protection that its author asked for.
fn key(fields: &mut Fields, place: impl Display) -> Result<Option<String>, DecodeError> {
    match json::take(fields, "idempotency_key") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(key)) => Ok(Some(key)),
        Some(other) => Err(json::shape(format_args!("{place}.idempotency_key"), "a string", &other)),
    }
}
