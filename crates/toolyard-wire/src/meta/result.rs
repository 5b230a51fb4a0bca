//! What comes with a result.

use super::{
    FailureMeta, META_PREFIX, Times,
    facts::{ATTEMPTS, Facts},
    failure::ERROR,
};
use crate::{
    FieldError,
    bounds::META_TEXT_BYTES_MAX,
    fields::{Reader, wrong},
    json::Fields,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolyard_core::{Arguments, Dedupe, Outcome, Sandbox, edited as edited_in};

/// Where it stands in an object that others use too.
const CALL: &str = "call";

pub(crate) const EDITED: &str = "edited";

/// What comes with a call's result beside its output, the same on every wire (SM-11): what programs read.
///
/// | field | what |
/// |---|---|
/// | `code`, `outcome`, `retryable`, `retry_after_ms?`, … | of a failure: the fields of [`FailureMeta`] |
/// | `attempts` | how often the handler was started |
/// | `dedupe` | whether the call ran: `fresh`, or shares another one's run: `joined`, `replayed` (ID-3) |
/// | `queued_ms`, `ran_ms`, `duration_ms` | how long it waited from the start of its run until its permits were granted and, with a recorder, its start was durable; how long it ran from then until its end; and both |
/// | `sandbox` | where it ran: `host`, `process`, `landlock`, `wasm`, `micro_vm`, `remote` |
/// | `recorded` | false if the result could not be made durable (SM-4); else left out |
/// | `edited` | the arguments with which it ran, if whoever approved it has changed them (SM-5), up to 256 KiB |
///
/// Times are whole milliseconds; `ran_ms` is `duration_ms` less `queued_ms`. In an object of its own all fields stand
/// together. In `_meta` of MCP, which others use too, they stand in two objects, as clients know them: `toolyard/call`,
/// and for a failure `toolyard/error`, both with `attempts`.
///
/// Whoever reads it ignores names that it does not know, and refuses known ones whose value is wrong. `attempts`,
/// `duration_ms` and `sandbox` have to be there.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{Call, CallError, ErrorKind, Outcome, Routing};
/// use toolyard_wire::ResultMeta;
/// let open = CallError::new(ErrorKind::CircuitOpen, "the breaker of 'pay' is open");
/// let outcome = Outcome::new(&Call::new("c", "pay", "{}"), Routing::ShortCircuit, Err(open));
/// let meta = ResultMeta::of(&outcome);
/// assert_eq!(meta.to_json(), json!({
///     "code": "circuit_open", "outcome": "not_started", "attempts": 0, "retryable": true,
///     "dedupe": "fresh", "queued_ms": 0, "ran_ms": 0, "duration_ms": 0, "sandbox": "host",
/// }));
/// assert_eq!(ResultMeta::read(&meta.to_json())?, meta);
/// # Ok::<(), toolyard_wire::FieldError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct ResultMeta {
    /// Their attempts are those of the failure, if there is one.
    facts: Facts,
    failure: Option<FailureMeta>,
    edited: Option<Arc<Value>>,
}

impl ResultMeta {
    /// Of a call that succeeded at this attempt, ran here, and took no time.
    pub fn new(attempts: u32) -> Self {
        let (dedupe, times, sandbox) = (Dedupe::Fresh, Times::default(), Sandbox::Host);
        let facts = Facts { attempts, dedupe, times, sandbox, recorded: true };
        Self { facts, failure: None, edited: None }
    }

    /// The same of a call that failed.
    pub fn of_failure(failure: FailureMeta) -> Self {
        let attempts = failure.attempts;
        Self { failure: Some(failure), ..Self::new(attempts) }
    }

    /// What comes with this outcome. The attempts of a failure are those that its error has. Changed arguments of more
    /// than [256 KiB](META_TEXT_BYTES_MAX) are left out: of these the model's text has the first 16 KiB.
    pub fn of(outcome: &Outcome) -> Self {
        let meta = match outcome.error() {
            Some(error) => Self::of_failure(FailureMeta::of(error)),
            None => Self::new(outcome.attempts),
        };
        let edited = edited_in(&outcome.status).filter(|args| fits(args)).cloned();
        let meta = Self { edited, ..meta };
        meta.with_dedupe(outcome.dedupe)
            .with_times(outcome.queued(), outcome.ran())
            .with_sandbox(outcome.sandbox)
            .with_recorded(outcome.recorded)
    }

    /// Sets whether the call shares another one's run.
    #[must_use]
    pub fn with_dedupe(mut self, dedupe: Dedupe) -> Self {
        self.facts.dedupe = dedupe;
        self
    }

    /// Sets how long the call [waited](Self::queued), and ran from then until its end. The whole milliseconds of both
    /// together, and of the wait, are kept.
    #[must_use]
    pub fn with_times(mut self, queued: Duration, ran: Duration) -> Self {
        self.facts.times = Times::of(queued, ran);
        self
    }

    /// Sets where the call ran.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.facts.sandbox = sandbox;
        self
    }

    /// Sets whether the result is durable, or need not be.
    #[must_use]
    pub fn with_recorded(mut self, recorded: bool) -> Self {
        self.facts.recorded = recorded;
        self
    }

    /// Sets the arguments with which the call ran, changed by whoever approved it.
    ///
    /// # Errors
    /// [`FieldError`] if they have more than [`META_TEXT_BYTES_MAX`] bytes.
    pub fn with_edited(mut self, arguments: impl Into<Arc<Value>>) -> Result<Self, FieldError> {
        let arguments = arguments.into();
        if !fits(&arguments) {
            return Err(too_long(EDITED.to_owned(), &arguments));
        }
        self.edited = Some(arguments);
        Ok(self)
    }

    /// How the call failed, if it did.
    pub fn failure(&self) -> Option<&FailureMeta> {
        self.failure.as_ref()
    }

    /// How often the handler was started.
    pub fn attempts(&self) -> u32 {
        self.facts.attempts
    }

    /// Whether the call shares another one's run.
    pub fn dedupe(&self) -> Dedupe {
        self.facts.dedupe
    }

    /// How long the call waited: from the start of its run until its permits were granted and, with a recorder, its start
    /// was durable.
    pub fn queued(&self) -> Duration {
        Duration::from_millis(self.facts.times.queued_ms)
    }

    /// How long the call ran from then until its end.
    pub fn ran(&self) -> Duration {
        Duration::from_millis(self.facts.times.ran_ms)
    }

    /// Where the call ran.
    pub fn sandbox(&self) -> Sandbox {
        self.facts.sandbox
    }

    /// `false` if the result could not be made durable: after a crash nobody would know of it (SM-4).
    pub fn recorded(&self) -> bool {
        self.facts.recorded
    }

    /// The arguments with which the call ran, if whoever approved it has changed them.
    pub fn edited(&self) -> Option<&Arc<Value>> {
        self.edited.as_ref()
    }

    /// As an object of its own.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        if let Some(failure) = &self.failure {
            failure.write(&mut fields);
        }
        self.write(&mut fields);
        Value::Object(fields)
    }

    /// As fields of an object that others use too, such as `_meta` of MCP: `toolyard/call`, and `toolyard/error` if the
    /// call failed.
    pub fn to_shared(&self) -> Map<String, Value> {
        let mut call = Map::new();
        self.write(&mut call);
        let call = (format!("{META_PREFIX}{CALL}"), Value::Object(call));
        let failure = self.failure.iter().flat_map(FailureMeta::to_shared);
        std::iter::once(call).chain(failure).collect()
    }

    /// Reads an object that is this.
    ///
    /// # Errors
    /// [`FieldError`] if it is no object, or a field is wrong or missing.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        Self::from_reader(&mut Reader::of("meta", "", value.clone())?)
    }

    /// Reads it from an object that others use too; `None` if it is not there.
    ///
    /// # Errors
    /// [`FieldError`] if one of its objects is none, or a field is wrong or missing.
    pub fn read_shared(fields: &Map<String, Value>) -> Result<Option<Self>, FieldError> {
        let ours = |name: &str| fields.get(&format!("{META_PREFIX}{name}")).cloned();
        let Some(call) = ours(CALL) else { return Ok(None) };
        let (call_name, error_name) = (format!("{META_PREFIX}{CALL}"), format!("{META_PREFIX}{ERROR}"));
        let mut call = Reader::of(&call_name, format!("{call_name}."), call)?;
        let mut meta = Self::from_reader(&mut call)?;
        if let Some(error) = ours(ERROR) {
            if meta.failure.is_some() {
                return Err(call.conflict("code", "is there beside 'toolyard/error'"));
            }
            let mut error = Reader::of(&error_name, format!("{error_name}."), error)?;
            let failure = FailureMeta::whole(&mut error)?;
            if failure.attempts != meta.facts.attempts {
                return Err(error.conflict(ATTEMPTS, "is not that of 'toolyard/call'"));
            }
            meta.failure = Some(failure);
        }
        Ok(Some(meta))
    }

    fn from_reader(reader: &mut Reader) -> Result<Self, FieldError> {
        let facts = Facts::take(reader)?;
        let failure = FailureMeta::take(reader, facts.attempts)?;
        Ok(Self { facts, failure, edited: edited(reader)? })
    }

    /// All but the failure.
    fn write(&self, fields: &mut Fields) {
        self.facts.write(fields);
        self.facts.write_recorded(fields);
        if let Some(edited) = &self.edited {
            fields.insert(EDITED.to_owned(), edited.as_ref().clone());
        }
    }
}

impl From<ResultMeta> for Value {
    fn from(meta: ResultMeta) -> Self {
        meta.to_json()
    }
}

impl TryFrom<Value> for ResultMeta {
    type Error = FieldError;

    fn try_from(value: Value) -> Result<Self, FieldError> {
        Self::read(&value)
    }
}

/// Takes the arguments with which a call ran.
fn edited(reader: &mut Reader) -> Result<Option<Arc<Value>>, FieldError> {
    match reader.value(EDITED).map(Arc::new) {
        Some(edited) if !fits(&edited) => Err(too_long(reader.name(EDITED), &edited)),
        edited => Ok(edited),
    }
}

fn fits(arguments: &Arc<Value>) -> bool {
    Arguments::Json(arguments.clone()).size() <= META_TEXT_BYTES_MAX
}

fn too_long(field: String, arguments: &Value) -> FieldError {
    wrong(field, &format!("arguments of at most {META_TEXT_BYTES_MAX} bytes"), arguments)
}
