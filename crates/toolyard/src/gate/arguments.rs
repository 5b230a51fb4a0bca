//! From what the provider sent to a value that fits the tool's schema.

use crate::{config::Limits, registry::ToolEntry};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolyard_core::{Arguments, Call, CallError, ErrorKind, ValidationError, wording};

/// How many misfits are told in the message; all of them are in `validation_errors`.
const MISFITS_IN_MESSAGE: usize = 3;

fn invalid(message: impl Into<String>) -> CallError {
    CallError::new(ErrorKind::InvalidInput, message)
}

/// The arguments as a value, within their bounds, and the call's own fields in order.
pub(super) fn parse(call: &Call, limits: &Limits) -> Result<Arc<Value>, CallError> {
    if call.timeout == Some(Duration::ZERO) {
        return Err(invalid("the call's timeout must not be zero"));
    }
    if let Some(key) = &call.idempotency_key
        && (key.is_empty() || key.len() > 255 || !key.bytes().all(|byte| byte.is_ascii_graphic()))
    {
        return Err(invalid("the idempotency key must be 1 to 255 visible ASCII characters"));
    }
    let value = match &call.arguments {
        Arguments::Text(text) => Arc::new(parse_text(text, limits)?),
        Arguments::Json(value) => value.clone(),
    };
    match measure(&value, limits.arguments_depth_max) {
        None => Err(invalid(format!("arguments nest deeper than {} levels", limits.arguments_depth_max))),
        Some(bytes) if bytes > limits.arguments_bytes_max => Err(too_large(bytes, limits)),
        Some(_) => Ok(value),
    }
}

fn too_large(bytes: usize, limits: &Limits) -> CallError {
    let most = limits.arguments_bytes_max;
    invalid(format!("arguments of {bytes} bytes are larger than {most}: send less at a time"))
}

fn parse_text(text: &str, limits: &Limits) -> Result<Value, CallError> {
    if text.len() > limits.arguments_bytes_max {
        return Err(too_large(text.len(), limits));
    }
    serde_json::from_str(text).map_err(|error| {
        let why = error.to_string();
        let why = why.split(" at line ").next().unwrap_or_default();
        invalid(wording::invalid_json(why, position(text, &error)))
    })
}

/// The byte at which parsing stopped, from 0.
fn position(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    (before + error.column().saturating_sub(1)).min(text.len())
}

/// About the bytes of a value, counted without writing it; `None` when it nests deeper than `depth`.
fn measure(value: &Value, depth: usize) -> Option<usize> {
    let depth = match value {
        Value::Array(_) | Value::Object(_) => depth.checked_sub(1)?,
        _ => depth,
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(4),
        Value::String(text) => Some(text.len() + 2),
        Value::Array(items) => items.iter().try_fold(2, |sum, item| Some(sum + 1 + measure(item, depth)?)),
        Value::Object(fields) => {
            fields.iter().try_fold(2, |sum, (key, item)| Some(sum + key.len() + 4 + measure(item, depth)?))
        }
    }
}

/// Whether the arguments fit the tool's schema.
pub(super) fn validate(entry: &ToolEntry, args: &Value) -> Result<(), CallError> {
    entry.schema().validate(args).map_err(|misfits| {
        let mut error = invalid(describe(entry.name(), &misfits));
        error.validation_errors = misfits;
        error
    })
}

fn describe(tool: &str, misfits: &[ValidationError]) -> String {
    let told = misfits.iter().take(MISFITS_IN_MESSAGE).map(|misfit| match misfit.pointer.as_str() {
        "" => misfit.message.clone(),
        pointer => format!("{pointer}: {}", misfit.message),
    });
    let told = told.collect::<Vec<_>>().join("; ");
    match misfits.len().saturating_sub(MISFITS_IN_MESSAGE) {
        0 => format!("Arguments of '{tool}' do not fit its schema: {told}"),
        more => format!("Arguments of '{tool}' do not fit its schema: {told}; … and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(&Call::new("c", "t", text), &Limits::default()).unwrap_err().message
    }

    /// V5: the wording of broken JSON, with the position in bytes from 0.
    #[test]
    fn broken_json_is_told_with_its_position() {
        assert_eq!(message("{\"a\": }"), "Invalid JSON: expected value at position 6");
        assert_eq!(message("{\n \"a\": 1,\n}"), "Invalid JSON: trailing comma at position 11");
        assert_eq!(message(""), "Invalid JSON: EOF while parsing a value at position 0");
        assert_eq!(message("{\"a\": "), "Invalid JSON: EOF while parsing a value at position 6");
        assert_eq!(message("{}x"), "Invalid JSON: trailing characters at position 2");
        assert!(message(&"[".repeat(100_000)).starts_with("Invalid JSON: recursion limit exceeded"));
    }

    /// CC-4: 256 KiB and 64 levels, for text and for values.
    #[test]
    fn arguments_are_bounded() {
        let deep = |levels| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let check = |value: Value| parse(&Call::new("c", "t", value), &Limits::default());
        assert!(check(deep(64)).is_ok());
        assert!(check(deep(65)).unwrap_err().message.contains("deeper than 64"));
        assert!(message(&deep(65).to_string()).contains("deeper than 64"));
        let long = format!("[\"{}\"]", "x".repeat(256 * 1024));
        assert!(message(&long).contains("larger than 262144"));
        assert!(check(serde_json::from_str(&long).unwrap()).is_err());
    }

    /// ID-2, V3: a key that is none and a timeout of zero are refused.
    #[test]
    fn the_calls_own_fields_are_checked() {
        let mut call = Call::new("c", "t", "{}").timeout(Duration::ZERO);
        assert!(parse(&call, &Limits::default()).unwrap_err().message.contains("timeout"));
        call.timeout = None;
        for key in ["", "a b", "ä", "a\n", &"k".repeat(256)] {
            call.idempotency_key = Some(key.into());
            assert!(parse(&call, &Limits::default()).unwrap_err().message.contains("key"), "{key:?}");
        }
        call.idempotency_key = Some("k".repeat(255).into());
        assert!(parse(&call, &Limits::default()).is_ok());
    }
}
