//! The error of a call as one JSON object.

use super::output;
use crate::{FieldError, bounds::LAST_ERRORS_MAX, fields::Reader, meta::FailureMeta};
use serde_json::{Value, json};
use std::time::Duration;
use toolyard_core::{
    CallError,
    error::{OldClass, OldKind, Slug},
};

/// Writes the error of a call as it stands in the neutral format and in an outcome (SM-11): the fields of [`CallError`]
/// (`code`, `message`, `attempts`, `outcome`, `retryable`, `advice` and, where there is something to say,
/// `retry_after_ms`, `reason`, `retry_stopped`, `suspended`, `last_error`, `validation_errors`, the tool's `content` …), and then what
/// other vocabularies call its code: `kind`, `class` and `slug` of V6, and `jsonrpc_code`.
///
/// # Examples
/// ```
/// use toolyard_core::{CallError, ErrorKind};
/// let error = toolyard_wire::error_to_json(&CallError::new(ErrorKind::NotFound, "no such tool"));
/// assert_eq!((&error["code"], &error["slug"]), (&"not_found".into(), &"tool_not_found".into()));
/// assert_eq!(error["jsonrpc_code"], -32601);
/// ```
pub fn error_to_json(error: &CallError) -> Value {
    // An error holds only texts, numbers and JSON, so its serialisation cannot fail.
    let mut written = serde_json::to_value(error).unwrap_or_else(|_| json!({}));
    if let Some(last) = &error.last_error {
        written["last_error"] = error_to_json(last);
    }
    written["kind"] = OldKind::from(error.kind).as_str().into();
    written["class"] = OldClass::from(error.kind).as_str().into();
    written["slug"] = Slug::from(error.kind).as_str().into();
    written["jsonrpc_code"] = error.kind.json_rpc().into();
    written
}

/// Takes an error, which is inside so many others.
pub(super) fn take(reader: &mut Reader, depth: usize) -> Result<CallError, FieldError> {
    let known = FailureMeta::within(reader, usize::MAX, usize::MAX)?;
    let mut error = CallError::new(known.code, reader.must("message", Reader::any_text)?);
    error.attempts = known.attempts;
    error.effect = known.outcome;
    error.retryable = known.retryable;
    error.retry_after = known.retry_after_ms.map(Duration::from_millis);
    error.reason = known.reason;
    error.retry_stopped = known.retry_stopped;
    error.suspended = known.suspended;
    error.validation_errors = known.validation_errors;
    error.advice = reader.any_text("advice")?.unwrap_or_default().into();
    error.last_error = last(reader, depth)?;
    error.user_visible = reader.flag("is_user_visible")?.unwrap_or(error.user_visible);
    Ok(error.with_output(output::take_of_error(reader)?))
}

fn last(reader: &mut Reader, depth: usize) -> Result<Option<Box<CallError>>, FieldError> {
    match reader.object("last_error")? {
        None => Ok(None),
        Some(_) if depth == LAST_ERRORS_MAX => {
            Err(reader.conflict("last_error", "is inside too many other errors"))
        }
        Some(mut last) => Ok(Some(Box::new(take(&mut last, depth + 1)?))),
    }
}
