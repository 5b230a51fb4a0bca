//! What goes with a call.

use super::{
    META_PREFIX,
    values::{agent, key, millis, no_agent, to_millis},
};
use crate::{
    FieldError,
    bounds::CALL_ID_BYTES_MAX,
    fields::{Reader, bound},
    json::Fields,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{num::NonZeroU64, time::Duration};
use toolyard_core::{AgentPath, Call, CallId, CallTimeout, IdempotencyKey, TimeoutScope};

const CALL_ID: &str = "call_id";
const KEY: &str = "idempotency_key";
const TIMEOUT: &str = "timeout_ms";
const DEADLINE: &str = "deadline_ms";
const AGENT: &str = "agent";

/// Every field, in the order in which they are written.
const FIELDS: [&str; 5] = [CALL_ID, KEY, TIMEOUT, DEADLINE, AGENT];

/// What goes with a call beside its tool and arguments, the same on every wire (SM-11). Every field may be left out.
///
/// | field | what |
/// |---|---|
/// | `call_id` | the id that the result carries: 1 to [1 024](CALL_ID_BYTES_MAX) bytes |
/// | `idempotency_key` | calls with equal keys run once (ID-1): 1 to 255 visible ASCII characters |
/// | `timeout_ms` | how long the call may take from its start, in milliseconds; the wire says whether retries count |
/// | `deadline_ms` | how long it may take with the wait for its start, in milliseconds |
/// | `agent` | who of the session makes it: `root`, or the sub-agent `root/researcher` (SM-8) |
///
/// Both times are durations, whole numbers of at least 1. A deadline is what is left of it when the call is sent, so
/// it means the same on machines whose clocks differ; the time on the way does not count. A caller that passes on a
/// call subtracts what has passed, and does not send a call that has no time left.
///
/// What is wrong is refused and never ignored, null included: a caller that sets a key relies on it. So is a name that
/// is not in the table, where the object, or the prefix in a shared object, is ours alone. What others write into
/// a shared object is theirs, and ignored.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use std::time::Duration;
/// use toolyard_wire::CallMeta;
/// let meta = CallMeta::read(&json!({"idempotency_key": "order-17", "timeout_ms": 1e3}))?;
/// assert_eq!(meta.timeout(), Some(Duration::from_secs(1)));
/// assert_eq!(meta.to_json(), json!({"idempotency_key": "order-17", "timeout_ms": 1000}));
///
/// let shared = json!({"toolyard/timeout_ms": 1000, "progressToken": 7});
/// assert_eq!(CallMeta::read_shared(shared.as_object().unwrap())?.timeout(), meta.timeout());
/// # Ok::<(), toolyard_wire::FieldError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct CallMeta {
    call_id: Option<CallId>,
    key: Option<IdempotencyKey>,
    timeout_ms: Option<NonZeroU64>,
    deadline_ms: Option<NonZeroU64>,
    agent: Option<AgentPath>,
}

impl CallMeta {
    /// Reads an object that is this and nothing else.
    ///
    /// # Errors
    /// [`FieldError`] if it is no object, a field is wrong, or a name is unknown.
    pub fn read(value: &Value) -> Result<Self, FieldError> {
        let mut reader = Reader::of("meta", "", value.clone())?;
        let meta = Self::from_reader(&mut reader)?;
        reader.end(&FIELDS)?;
        Ok(meta)
    }

    /// Takes it out of an object that has other fields too, which stay.
    ///
    /// # Errors
    /// [`FieldError`] if a field is wrong.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard_wire::CallMeta;
    /// let mut call = json!({"tool": "pay", "call_id": "c", "attempt": 1, "deadline_ms": 500});
    /// let meta = CallMeta::take(call.as_object_mut().unwrap())?;
    /// assert_eq!(meta.call_id().map(|id| id.as_str()), Some("c"));
    /// assert_eq!(call, json!({"tool": "pay", "attempt": 1}));
    /// # Ok::<(), toolyard_wire::FieldError>(())
    /// ```
    pub fn take(fields: &mut Map<String, Value>) -> Result<Self, FieldError> {
        let mut reader = Reader::new("", std::mem::take(fields));
        let meta = Self::from_reader(&mut reader);
        *fields = reader.rest();
        meta
    }

    /// Reads it from an object that others use too, such as `_meta` of MCP, where each name follows
    /// [`META_PREFIX`]. Names without it are those of others. A wire that has more names under it leaves them out of what it
    /// passes here.
    ///
    /// # Errors
    /// [`FieldError`] if a field is wrong, or a name with the prefix is unknown.
    pub fn read_shared<'a>(
        fields: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<Self, FieldError> {
        let ours = fields.into_iter().filter_map(|(name, value)| {
            let name = name.strip_prefix(META_PREFIX)?;
            Some((name.to_owned(), value.clone()))
        });
        let mut reader = Reader::new(META_PREFIX, ours.collect());
        let meta = Self::from_reader(&mut reader)?;
        reader.end(&FIELDS)?;
        Ok(meta)
    }

    fn from_reader(reader: &mut Reader) -> Result<Self, FieldError> {
        Ok(Self {
            call_id: reader.text(CALL_ID, 1..=CALL_ID_BYTES_MAX)?.map(CallId::from),
            key: key(reader, KEY)?,
            timeout_ms: millis(reader, TIMEOUT)?,
            deadline_ms: millis(reader, DEADLINE)?,
            agent: agent(reader, AGENT)?,
        })
    }

    /// What goes with `call`. A timeout is written without its scope, which the wire says.
    ///
    /// # Errors
    /// [`FieldError`] if the call's id or key is out of bounds: its receiver would refuse it.
    pub fn of(call: &Call) -> Result<Self, FieldError> {
        let key = call.idempotency_key.clone().map(IdempotencyKey::new).transpose();
        let key = key.map_err(|source| FieldError::Key { field: KEY.to_owned(), source })?;
        Ok(Self {
            key,
            timeout_ms: call.timeout.map(|timeout| to_millis(timeout.duration())),
            deadline_ms: call.deadline.map(to_millis),
            ..Self::default().with_call_id(call.id.clone())?
        })
    }

    /// Puts into `call` what is set here. The agent is not in a call: whoever reads it picks the session by it.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use toolyard_core::{Call, CallTimeout, TimeoutScope};
    /// use toolyard_wire::CallMeta;
    /// let mut call = Call::new("c", "pay", "{}");
    /// let second = Duration::from_secs(1);
    /// CallMeta::default().with_timeout(second).apply(&mut call, TimeoutScope::Call);
    /// assert_eq!(call.timeout, Some(CallTimeout::of_call(second)));
    /// ```
    pub fn apply(&self, call: &mut Call, scope: TimeoutScope) {
        if let Some(id) = &self.call_id {
            call.id = id.clone();
        }
        if let Some(key) = &self.key {
            call.idempotency_key = Some(key.clone().into());
        }
        if let Some(timeout) = self.timeout() {
            call.timeout = Some(match scope {
                TimeoutScope::Attempt => CallTimeout::of_attempt(timeout),
                TimeoutScope::Call => CallTimeout::of_call(timeout),
            });
        }
        call.deadline = self.deadline().or(call.deadline);
    }

    /// Sets the call's id.
    ///
    /// # Errors
    /// [`FieldError`] if it is empty or longer than [`CALL_ID_BYTES_MAX`].
    pub fn with_call_id(mut self, id: impl Into<CallId>) -> Result<Self, FieldError> {
        let id = id.into();
        bound(|| CALL_ID.to_owned(), id.as_str(), 1..=CALL_ID_BYTES_MAX)?;
        self.call_id = Some(id);
        Ok(self)
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn with_key(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets how long the call may take from its start, in whole milliseconds, rounded up; at least one.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout_ms = Some(to_millis(timeout));
        self
    }

    /// Sets how long the call may still take with the wait for its start, in whole milliseconds, rounded up; at least
    /// one.
    #[must_use]
    pub fn with_deadline(mut self, left: Duration) -> Self {
        self.deadline_ms = Some(to_millis(left));
        self
    }

    /// Sets the agent that makes the call.
    ///
    /// # Errors
    /// [`FieldError`] if it is not the path of an agent.
    pub fn with_agent(mut self, agent: impl Into<AgentPath>) -> Result<Self, FieldError> {
        let agent = agent.into();
        if AgentPath::parse(agent.as_str()).is_none() {
            return Err(no_agent(AGENT.to_owned(), &agent.as_str().into()));
        }
        self.agent = Some(agent);
        Ok(self)
    }

    /// The call's id.
    pub fn call_id(&self) -> Option<&CallId> {
        self.call_id.as_ref()
    }

    /// The idempotency key.
    pub fn key(&self) -> Option<&IdempotencyKey> {
        self.key.as_ref()
    }

    /// How long the call may take from its start.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(|millis| Duration::from_millis(millis.get()))
    }

    /// How long the call may take with the wait for its start.
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline_ms.map(|millis| Duration::from_millis(millis.get()))
    }

    /// The agent that makes the call.
    pub fn agent(&self) -> Option<&AgentPath> {
        self.agent.as_ref()
    }

    /// As an object of its own; empty if nothing is set.
    pub fn to_json(&self) -> Value {
        Value::Object(self.fields(""))
    }

    /// As fields of an object that others use too, such as `_meta` of MCP.
    pub fn to_shared(&self) -> Map<String, Value> {
        self.fields(META_PREFIX)
    }

    fn fields(&self, prefix: &str) -> Fields {
        let values: [Option<Value>; FIELDS.len()] = [
            self.call_id.as_ref().map(|id| id.as_str().into()),
            self.key.as_ref().map(|key| key.as_str().into()),
            self.timeout_ms.map(|millis| millis.get().into()),
            self.deadline_ms.map(|millis| millis.get().into()),
            self.agent.as_ref().map(|agent| agent.as_str().into()),
        ];
        let named = FIELDS.iter().zip(values);
        named.filter_map(|(name, value)| Some((format!("{prefix}{name}"), value?))).collect()
    }
}

impl From<CallMeta> for Value {
    fn from(meta: CallMeta) -> Self {
        meta.to_json()
    }
}

impl TryFrom<Value> for CallMeta {
    type Error = FieldError;

    fn try_from(value: Value) -> Result<Self, FieldError> {
        Self::read(&value)
    }
}
