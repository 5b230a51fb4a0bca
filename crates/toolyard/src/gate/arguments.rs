//! From the arguments a provider sent to a value that fits the tool's schema.

use super::{NotCleared, Unvalidated};
use crate::{
    config::Limits,
    tool::{Exhausted, ToolEntry},
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolyard_core::{
    Arguments, Call, CallError, ErrorKind, IdempotencyKey, ValidationError, nests_at_most, wording,
};
use toolyard_redact::Marks;

/// How many misfits the message names; `validation_errors` has all of them.
const MISFITS_IN_MESSAGE: usize = 3;

pub(super) fn invalid(message: impl Into<String>) -> CallError {
    CallError::new(ErrorKind::InvalidInput, message)
}

/// The parsed arguments of a call. A call that came with a value keeps it, which saves a reference count.
pub(super) struct Args {
    /// The value of its text, if it came as text.
    pub(super) parsed: Option<Arc<Value>>,
}

impl Args {
    /// The arguments; `call` must be the call that they were parsed from.
    pub(super) fn of<'a>(&'a self, call: &'a Call) -> &'a Arc<Value> {
        match (&self.parsed, &call.arguments) {
            (Some(value), _) | (None, Arguments::Json(value)) => value,
            (None, Arguments::Text(_)) => unreachable!("text is parsed before a call is let through"),
        }
    }
}

/// Refuses arguments that are too long to be looked at (CC-4). Returns their size: to know it, a value is walked.
pub(crate) fn bound(arguments: &Arguments, bytes_max: usize) -> Result<usize, CallError> {
    match arguments.size() {
        bytes if bytes > bytes_max => Err(invalid(format!(
            "the arguments have {bytes} bytes, more than the limit of {bytes_max}: send less at a time"
        ))),
        bytes => Ok(bytes),
    }
}

/// Parses the arguments within their bounds, and checks the call's own fields.
pub(super) fn parse(call: &Call, limits: &Limits) -> Result<Args, CallError> {
    if call.timeout.is_some_and(|timeout| timeout.duration().is_zero()) {
        return Err(invalid("the call's timeout must not be zero"));
    }
    if call.deadline == Some(Duration::ZERO) {
        return Err(invalid("the call's deadline must not be zero"));
    }
    if let Some(key) = &call.idempotency_key {
        IdempotencyKey::check(key).map_err(|error| invalid(error.to_string()))?;
    }
    let parsed = match &call.arguments {
        Arguments::Text(text) => Some(Arc::new(parse_text(text)?)),
        Arguments::Json(_) => None,
    };
    let args = Args { parsed };
    if !nests_at_most(args.of(call), limits.arguments_depth_max) {
        return Err(invalid(format!("arguments nest deeper than {} levels", limits.arguments_depth_max)));
    }
    Ok(args)
}

fn parse_text(text: &str) -> Result<Value, CallError> {
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

/// Refuses arguments with a mark that the session was given in place of a secret: the model has not seen what the mark
/// stands for, and a tool that took the mark for the text would write it into a file, or send it away (PO-7).
pub(super) fn without_marks(args: &Value, given: Marks) -> Result<(), CallError> {
    if given.is_empty() {
        return Ok(());
    }
    given.first_in(args).map_or(Ok(()), |mark| {
        Err(invalid(wording::redacted_argument(mark)).with_advice(wording::REDACTED_ARGUMENT_ADVICE))
    })
}

/// Whether the arguments fit the tool's schema, as far as that is quickly found out.
#[inline(always)]
pub(super) fn validate(entry: &Arc<ToolEntry>, args: &Arc<Value>) -> Result<(), NotCleared> {
    match entry.schema().validate_briefly(args) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(misfits)) => Err(misfit(entry, misfits).into()),
        Err(Exhausted) => {
            Err(NotCleared::Unvalidated(Unvalidated { entry: entry.clone(), args: args.clone() }))
        }
    }
}

/// The error of arguments that do not fit the tool's schema.
pub(super) fn misfit(entry: &ToolEntry, misfits: Vec<ValidationError>) -> CallError {
    let mut error = invalid(describe(entry.name(), &misfits));
    error.validation_errors = misfits;
    error
}

fn describe(tool: &str, misfits: &[ValidationError]) -> String {
    let shown = misfits.iter().take(MISFITS_IN_MESSAGE).map(|misfit| match misfit.pointer.as_str() {
        "" => misfit.message.clone(),
        pointer => format!("{pointer}: {}", misfit.message),
    });
    let shown = shown.collect::<Vec<_>>().join("; ");
    match misfits.len().saturating_sub(MISFITS_IN_MESSAGE) {
        0 => format!("Arguments of '{tool}' do not fit its schema: {shown}"),
        more => format!("Arguments of '{tool}' do not fit its schema: {shown}; … and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        parse(&Call::new("c", "t", text), &Limits::default()).err().unwrap().message
    }

    /// V5: the wording for broken JSON, with the position in bytes from 0.
    #[test]
    fn broken_json_is_told_with_its_position() {
        assert_eq!(message("{\"a\": }"), "Invalid JSON: expected value at position 6");
        assert_eq!(message("{\n \"a\": 1,\n}"), "Invalid JSON: trailing comma at position 11");
        assert_eq!(message(""), "Invalid JSON: EOF while parsing a value at position 0");
        assert_eq!(message("{\"a\": "), "Invalid JSON: EOF while parsing a value at position 6");
        assert_eq!(message("{}x"), "Invalid JSON: trailing characters at position 2");
        assert!(message(&"[".repeat(100_000)).starts_with("Invalid JSON: recursion limit exceeded"));
    }

    /// CC-4: 64 levels, for text and for values.
    #[test]
    fn arguments_are_bounded() {
        let deep = |levels| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let check = |value: Value| parse(&Call::new("c", "t", value), &Limits::default());
        assert!(check(deep(64)).is_ok());
        assert!(check(deep(65)).err().unwrap().message.contains("deeper than 64"));
        assert!(message(&deep(65).to_string()).contains("deeper than 64"));
    }

    /// ID-2, V3: an invalid key and a timeout of zero are refused.
    #[test]
    fn the_calls_own_fields_are_checked() {
        let mut call = Call::new("c", "t", "{}").timeout(Duration::ZERO);
        assert!(parse(&call, &Limits::default()).err().unwrap().message.contains("timeout"));
        call.timeout = None;
        for key in ["", "a b", "ä", "a\n", &"k".repeat(256)] {
            call.idempotency_key = Some(key.into());
            assert!(parse(&call, &Limits::default()).err().unwrap().message.contains("key"), "{key:?}");
        }
        call.idempotency_key = Some("k".repeat(255).into());
        assert!(parse(&call, &Limits::default()).is_ok());
    }
}
