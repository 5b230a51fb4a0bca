//! Reads JSON with errors that name the place, and takes fields out of it.

mod rescue;

use crate::{DecodeError, bounds::BODY_BYTES_MAX};
use serde_json::{Map, Value, error::Category};
use std::fmt::Display;

/// The likely cause of several values in one text.
const LINES: &str = "pass one response at a time; read JSON lines of episodes with --from episodes";

/// The fields of a JSON object.
pub(crate) type Fields = Map<String, Value>;

/// Refuses text that is too large or empty, and strips the byte order mark that some files begin with.
pub(crate) fn bounded(text: &str) -> Result<&str, DecodeError> {
    if text.len() > BODY_BYTES_MAX {
        return Err(DecodeError::TooLarge { max: BODY_BYTES_MAX });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match text.trim_ascii() {
        "" => Err(DecodeError::Empty),
        _ => Ok(text),
    }
}

/// Parses `text`. If only the arguments of calls exceed what the parser can represent, the value has them as
/// strings of their raw text: broken arguments cost their own call and no other.
pub(crate) fn parse(text: &str) -> Result<Value, DecodeError> {
    strict(text).or_else(|error| {
        if !rescue::is_rescuable(&error) {
            return Err(error);
        }
        let rescued = rescue::rescue(text).and_then(|text| strict(&text).ok());
        rescued.ok_or(error)
    })
}

/// Parses `text` unchanged. The parser stops at 127 levels, so that depth is an error and never a stack overflow.
fn strict(text: &str) -> Result<Value, DecodeError> {
    serde_json::from_str(text).map_err(|error| classify(&error))
}

fn classify(error: &serde_json::Error) -> DecodeError {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let reason = text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason);
    if error.classify() == Category::Eof {
        return DecodeError::Truncated { line, column };
    }
    if reason == "recursion limit exceeded" {
        return DecodeError::TooDeep { line, column };
    }
    DecodeError::NotJson {
        reason: reason.to_owned(),
        line,
        column,
        advice: (reason == "trailing characters").then_some(LINES),
    }
}

/// The kind of a value, with its article.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Describes a value: its kind, and the first keys of an object.
pub(crate) fn describe(value: &Value) -> String {
    const KEYS_MAX: usize = 6;
    match value {
        Value::Object(fields) if fields.is_empty() => "an empty object".to_owned(),
        Value::Object(fields) => {
            let keys: Vec<String> = fields.keys().take(KEYS_MAX).map(|key| clip(key)).collect();
            let more = if fields.len() > KEYS_MAX { ", …" } else { "" };
            format!("an object with the keys {}{more}", keys.join(", "))
        }
        Value::Array(items) => match items.first() {
            Some(Value::Array(_)) => "an array of arrays".to_owned(),
            Some(first) => format!("an array whose first item is {}", describe(first)),
            None => "an empty array".to_owned(),
        },
        other => kind(other).to_owned(),
    }
}

/// The start of a key, on one line, because keys come from outside and go into error messages.
pub(crate) fn clip(key: &str) -> String {
    const CHARS_MAX: usize = 40;
    let clean = key.chars().filter(|c| !c.is_control());
    clean.take(CHARS_MAX).collect()
}

/// The fields of a value that must be an object.
pub(crate) fn object(value: Value, place: impl Display) -> Result<Fields, DecodeError> {
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(shape(place, "an object", &other)),
    }
}

/// The items of a value that must be an array; none if it is missing or null.
pub(crate) fn items(value: Option<Value>, place: impl Display) -> Result<Vec<Value>, DecodeError> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(other) => Err(shape(place, "an array", &other)),
    }
}

/// Builds a [`DecodeError::Shape`].
pub(crate) fn shape(place: impl Display, expected: &'static str, found: &Value) -> DecodeError {
    DecodeError::Shape { place: place.to_string(), expected, found: kind(found) }
}

/// Takes a field, keeping the order of the others.
pub(crate) fn take(fields: &mut Fields, key: &str) -> Option<Value> {
    fields.shift_remove(key)
}

/// Takes a field under either spelling: protobuf's JSON reads `functionCall` and `function_call` alike.
pub(crate) fn take_either(fields: &mut Fields, camel: &str, snake: &str) -> Option<Value> {
    let first = take(fields, camel);
    let second = take(fields, snake);
    first.or(second)
}

/// Takes a text field. Numbers become their digits, because some servers number their calls; empty text and
/// anything else count as missing.
pub(crate) fn take_text(fields: &mut Fields, key: &str) -> Option<String> {
    match take(fields, key)? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Takes the id of a call. Empty text stays: the provider's own message has it, and the result must match that.
pub(crate) fn take_id(fields: &mut Fields, key: &str) -> Option<String> {
    let is_empty = is_empty_text(fields, key);
    take_text(fields, key).or(is_empty.then(String::new))
}

/// Whether a field is empty text.
pub(crate) fn is_empty_text(fields: &Fields, key: &str) -> bool {
    fields.get(key).and_then(Value::as_str) == Some("")
}

/// The text of a field, which stays in place; empty if it is not a string.
pub(crate) fn text<'a>(fields: &'a Fields, key: &str) -> &'a str {
    fields.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Takes the first item of an array (`choices`, `candidates`), since a conversation continues with one only.
pub(crate) fn take_first(fields: &mut Fields, key: &str) -> Result<Option<Value>, DecodeError> {
    let items = items(take(fields, key), key)?;
    Ok(items.into_iter().next())
}

/// Fails if the answer is an error of the provider.
pub(crate) fn refuse_provider_error(value: &Value) -> Result<(), DecodeError> {
    // Without SSE, Gemini streams an array, and an error comes as its only item.
    let value = match value {
        Value::Array(items) if items.len() == 1 => &items[0],
        value => value,
    };
    let error = match value.get("error") {
        None | Some(Value::Null) => return Ok(()),
        Some(error) => error,
    };
    let message = error.get("message").unwrap_or(error);
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    Err(DecodeError::Provider { message: message.replace(['\r', '\n'], " ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(parse(text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn an_error_names_line_and_column() {
        check("{\n  x", "not JSON: key must be a string at line 2 column 3");
    }

    #[test]
    fn a_cut_text_is_not_an_invalid_one() {
        let cut = "the JSON ends too early, at line 1 column 9: the response was cut off, fetch it again";
        check(r#"{"calls":"#, cut);
    }

    #[test]
    fn nesting_too_deep_is_an_error_and_no_overflow() {
        let text = "[".repeat(1_000_000);
        assert!(matches!(parse(&text), Err(DecodeError::TooDeep { line: 1, .. })));
    }

    #[test]
    fn several_values_hint_at_episodes() {
        let error = parse("{}\n{}").unwrap_err().to_string();
        assert!(error.ends_with("--from episodes"), "{error}");
    }

    #[test]
    fn a_provider_error_is_one_line() {
        let value = parse(r#"{"type":"error","error":{"type":"overloaded_error","message":"Over\nloaded"}}"#);
        let error = refuse_provider_error(&value.unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "the provider returned an error: Over loaded");
    }
}
