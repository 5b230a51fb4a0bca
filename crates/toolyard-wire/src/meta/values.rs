//! The values in a call's meta.

use crate::{
    FieldError,
    fields::{Reader, wrong},
};
use serde_json::Value;
use std::{num::NonZeroU64, time::Duration};
use toolyard_core::{AgentPath, IdempotencyKey};

/// Takes an idempotency key.
pub(super) fn key(reader: &mut Reader, name: &str) -> Result<Option<IdempotencyKey>, FieldError> {
    let field = reader.name(name);
    match reader.value(name) {
        None => Ok(None),
        Some(Value::String(text)) => match IdempotencyKey::new(text) {
            Ok(key) => Ok(Some(key)),
            Err(source) => Err(FieldError::Key { field, source }),
        },
        Some(other) => Err(wrong(field, "a string", &other)),
    }
}

/// Takes a time of at least one millisecond.
pub(super) fn millis(reader: &mut Reader, name: &str) -> Result<Option<NonZeroU64>, FieldError> {
    let expected = "a whole number of milliseconds, at least 1";
    Ok(reader.whole(name, 1..=u64::MAX, expected)?.and_then(NonZeroU64::new))
}

/// Whole milliseconds, so that nobody has less time than was meant.
pub(super) fn to_millis(time: Duration) -> NonZeroU64 {
    let millis = u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    NonZeroU64::new(millis).unwrap_or(NonZeroU64::MIN)
}

/// Takes the path of an agent.
pub(super) fn agent(reader: &mut Reader, name: &str) -> Result<Option<AgentPath>, FieldError> {
    let field = reader.name(name);
    let Some(value) = reader.value(name) else { return Ok(None) };
    match value.as_str().and_then(AgentPath::parse) {
        None => Err(no_agent(field, &value)),
        path => Ok(path),
    }
}

/// The error of what is not the path of an agent.
pub(super) fn no_agent(field: String, found: &Value) -> FieldError {
    wrong(field, "root, or root and the names of sub-agents, such as root/researcher", found)
}
