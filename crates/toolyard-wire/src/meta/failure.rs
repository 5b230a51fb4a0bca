//! What programs read of a failure.

use super::{META_PREFIX, facts::ATTEMPTS};
use crate::{
    FieldError,
    bounds::{META_TEXT_BYTES_MAX, VALIDATION_ERRORS_MAX},
    fields::Reader,
    json::Fields,
};
use serde_json::{Map, Value, json};
use toolyard_core::{CallError, Effect, ErrorKind, Reason, RetryStopped, ValidationError};

/// Where it stands in an object that others use too.
pub(super) const ERROR: &str = "error";

pub(super) const EFFECTS: &str = "not_started, failed, unknown";
pub(super) const REASONS: &str =
    "zombie, would_deadlock, predecessor, predecessor_unknown, expired, sink, result_budget, journal";
pub(super) const RETRY_STOPS: &str = "attempts, hint, deadline, budget, zombie";
const CODES: &str = "the error codes";
const TURN: &str = "the number of a turn";

/// What programs read of a failure: a [`CallError`] without its texts for the model (SM-11, V5).
///
/// | field | what |
/// |---|---|
/// | `code` | the code of V4 |
/// | `outcome` | what is known of the call's effect: `not_started`, `failed`, `unknown` |
/// | `attempts` | how often the handler was started |
/// | `retryable` | whether the caller may send the call again |
/// | `retry_after_ms` | how long to wait before that, in milliseconds; if known |
/// | `reason`, `retry_stopped` | the specific cause, and why it was not retried; if there is one |
/// | `suspended` | the turn to resume, if a drain has suspended the call: it has not ended (SM-10) |
/// | `validation_errors` | where the arguments do not match the schema: `{pointer, message}`; if that is why |
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{CallError, ErrorKind};
/// use toolyard_wire::FailureMeta;
/// let meta = FailureMeta::of(&CallError::new(ErrorKind::Overloaded, "the queue is full"));
/// assert_eq!(meta.to_json(), json!({
///     "code": "overloaded", "outcome": "not_started", "attempts": 0, "retryable": true, "retry_after_ms": 1000,
/// }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureMeta {
    /// The code.
    pub code: ErrorKind,
    /// What is known of the call's effect.
    pub outcome: Effect,
    /// How often the handler was started.
    pub attempts: u32,
    /// Whether the caller may send the call again.
    pub retryable: bool,
    /// How long to wait before that, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// The specific cause, where the code has several.
    pub reason: Option<Reason>,
    /// Why the call was not retried, where it could have been.
    pub retry_stopped: Option<RetryStopped>,
    /// The turn with which the call goes on in another life of the engine, if a drain has suspended it (SM-10).
    pub suspended: Option<u64>,
    /// Where the arguments do not match the schema; the first [`VALIDATION_ERRORS_MAX`] places.
    pub validation_errors: Vec<ValidationError>,
}

impl FailureMeta {
    /// What programs read of this error.
    pub fn of(error: &CallError) -> Self {
        let after = error.retry_after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
        Self {
            code: error.kind,
            outcome: error.effect,
            attempts: error.attempts,
            retryable: error.retryable,
            retry_after_ms: after,
            reason: error.reason,
            retry_stopped: error.retry_stopped,
            suspended: error.suspended,
            validation_errors: error.validation_errors.iter().take(VALIDATION_ERRORS_MAX).cloned().collect(),
        }
    }

    /// As an object of its own.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        self.write(&mut fields);
        Value::Object(fields)
    }

    /// As fields of an object that others use too, such as `data` of a JSON-RPC error: `toolyard/error`.
    pub fn to_shared(&self) -> Map<String, Value> {
        Map::from_iter([(format!("{META_PREFIX}{ERROR}"), self.to_json())])
    }

    pub(super) fn write(&self, fields: &mut Fields) {
        let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
        put("code", self.code.code().into());
        put("outcome", json!(self.outcome));
        put(ATTEMPTS, self.attempts.into());
        put("retryable", self.retryable.into());
        if let Some(after) = self.retry_after_ms {
            put("retry_after_ms", after.into());
        }
        if let Some(reason) = self.reason {
            put("reason", json!(reason));
        }
        if let Some(why) = self.retry_stopped {
            put("retry_stopped", json!(why));
        }
        if let Some(turn) = self.suspended {
            put("suspended", turn.into());
        }
        if !self.validation_errors.is_empty() {
            put("validation_errors", json!(self.validation_errors));
        }
    }

    /// Reads an object that [`to_json`](Self::to_json) wrote. Names that are not in the table are ignored.
    ///
    /// # Errors
    /// [`FieldError`] if it is no object, or a field is wrong or missing.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        Self::whole(&mut Reader::of("meta", "", value.clone())?)
    }

    /// Takes it out of an object of its own.
    pub(super) fn whole(reader: &mut Reader) -> Result<Self, FieldError> {
        Self::within(reader, VALIDATION_ERRORS_MAX, META_TEXT_BYTES_MAX)
    }

    /// Takes it with at most so many validation errors, whose texts have at most so many bytes.
    pub(crate) fn within(
        reader: &mut Reader,
        errors_max: usize,
        bytes_max: usize,
    ) -> Result<Self, FieldError> {
        let attempts = reader.must(ATTEMPTS, Reader::count)?;
        let failure = Self::take_within(reader, attempts, errors_max, bytes_max)?;
        failure.ok_or_else(|| reader.missing("code"))
    }

    /// Takes it out of the fields of a result's meta; `None` if the call has not failed.
    pub(super) fn take(reader: &mut Reader, attempts: u32) -> Result<Option<Self>, FieldError> {
        Self::take_within(reader, attempts, VALIDATION_ERRORS_MAX, META_TEXT_BYTES_MAX)
    }

    fn take_within(
        reader: &mut Reader,
        attempts: u32,
        errors_max: usize,
        bytes_max: usize,
    ) -> Result<Option<Self>, FieldError> {
        let code = reader.word("code", CODES)?;
        let outcome = reader.word("outcome", EFFECTS)?;
        let retryable = reader.flag("retryable")?;
        let retry_after_ms =
            reader.whole("retry_after_ms", 0..=u64::MAX, "a whole number of milliseconds")?;
        let reason = reader.word("reason", REASONS)?;
        let retry_stopped = reader.word("retry_stopped", RETRY_STOPS)?;
        let suspended = reader.whole("suspended", 0..=u64::MAX, TURN)?;
        let validation_errors = reader
            .list("validation_errors", errors_max, |name, value| validation_error(name, value, bytes_max))?;
        let Some(code) = code else {
            let stray = [
                ("outcome", outcome.is_some()),
                ("retryable", retryable.is_some()),
                ("retry_after_ms", retry_after_ms.is_some()),
                ("reason", reason.is_some()),
                ("retry_stopped", retry_stopped.is_some()),
                ("suspended", suspended.is_some()),
                ("validation_errors", validation_errors.is_some()),
            ];
            let stray = stray.into_iter().find(|(_, is_there)| *is_there);
            return stray.map_or(Ok(None), |(key, _)| Err(reader.conflict(key, "is there without a 'code'")));
        };
        Ok(Some(Self {
            code,
            outcome: outcome.ok_or_else(|| reader.missing("outcome"))?,
            attempts,
            retryable: retryable.ok_or_else(|| reader.missing("retryable"))?,
            retry_after_ms,
            reason,
            retry_stopped,
            suspended,
            validation_errors: validation_errors.unwrap_or_default(),
        }))
    }
}

/// Reads one place where arguments do not match.
fn validation_error(name: String, value: Value, bytes_max: usize) -> Result<ValidationError, FieldError> {
    let mut reader = Reader::of(&name, format!("{name}."), value)?;
    let text = |reader: &mut Reader, key: &str| reader.text(key, 0..=bytes_max);
    Ok(ValidationError { pointer: reader.must("pointer", text)?, message: reader.must("message", text)? })
}
