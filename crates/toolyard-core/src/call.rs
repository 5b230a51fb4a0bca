//! The calls that a model asks for.

use crate::canonical_json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    borrow::{Borrow, Cow},
    fmt,
    sync::Arc,
    time::Duration,
};

/// The id of a call, unique within its batch (CL-8). Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(Arc<str>);

impl CallId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<T: Into<Arc<str>>> From<T> for CallId {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Borrow<str> for CallId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Arguments as received: JSON that is still text, or a value that a decoder has parsed. Cheap to clone.
///
/// Text is only parsed by the engine's parse step, so broken JSON makes that one call `invalid_input` instead of
/// failing the batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Arguments {
    /// JSON text, not parsed yet.
    Text(Arc<str>),
    /// A JSON value.
    Json(Arc<Value>),
}

impl Arguments {
    /// The arguments of a call without arguments: an empty object.
    pub fn empty() -> Self {
        Self::Json(Arc::new(Value::Object(Map::new())))
    }

    /// The arguments that a value stands for: its JSON, or, if that is a string, the JSON text in it, as a model wrote it.
    /// What serialises to null, such as `()`, is an empty object. A value that JSON has no form for, such as a map whose
    /// keys are no strings, becomes text that says so, and its call `invalid_input`.
    ///
    /// # Examples
    /// ```
    /// use serde::Serialize;
    /// use serde_json::json;
    /// use toolyard_core::Arguments;
    /// #[derive(Serialize)]
    /// struct City { name: &'static str }
    /// assert_eq!(Arguments::of(&City { name: "Oslo" }), json!({"name": "Oslo"}).into());
    /// assert_eq!(Arguments::of(r#"{"name": "Oslo"}"#), r#"{"name": "Oslo"}"#.into());
    /// assert_eq!(Arguments::of(&()), Arguments::empty());
    /// ```
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Self {
        match serde_json::to_value(value) {
            Ok(Value::String(text)) => Self::Text(text.into()),
            Ok(Value::Null) => Self::empty(),
            Ok(value) => Self::Json(Arc::new(value)),
            Err(error) => Self::Text(format!("not written as JSON: {error}").into()),
        }
    }

    /// The arguments as text: as received, or serialised to JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
        }
    }

    /// The length of the text in bytes, or an estimate of that of the serialised value.
    pub fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Json(value) => crate::extent::value_size(value),
        }
    }

    /// The arguments as a value if they are JSON, otherwise their text as a JSON string.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.as_ref().to_owned()))
            }
            Self::Json(value) => value.as_ref().clone(),
        }
    }

    /// Whether they are these arguments, in whatever [spelling](crate::canonical_json). Text that is no JSON is none.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard_core::Arguments;
    /// let args = json!({"depth": 1, "path": "a"});
    /// assert!(Arguments::from(r#"{"path": "a", "depth": 1.0}"#).is(&args));
    /// assert!(!Arguments::from(r#"{"path": "a"}"#).is(&args) && !Arguments::from("a").is(&json!("a")));
    /// ```
    pub fn is(&self, args: &Value) -> bool {
        match self {
            Self::Json(value) => canonical_json(value) == canonical_json(args),
            Self::Text(text) => serde_json::from_str::<Value>(text)
                .is_ok_and(|value| canonical_json(&value) == canonical_json(args)),
        }
    }

    /// Whether both mean the same: a provider writes arguments piece by piece into its stream, and as an object into the
    /// response that repeats it. Text that is not JSON means only itself.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard_core::Arguments;
    /// let (streamed, whole) = (Arguments::from(r#"{"path":"a"}"#), Arguments::from(json!({"path": "a"})));
    /// assert!(streamed.means(&whole) && whole.means(&streamed));
    /// assert!(Arguments::from("{").means(&"{".into()) && !Arguments::from("{").means(&whole));
    /// ```
    pub fn means(&self, other: &Self) -> bool {
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        self == other
            || match (self, other) {
                (one, Self::Json(value)) | (Self::Json(value), one) => one.is(value),
                (Self::Text(text), one) => parsed(text).is_some_and(|value| one.is(&value)),
            }
    }
}

impl Default for Arguments {
    fn default() -> Self {
        Self::empty()
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Self {
        Self::Json(Arc::new(value))
    }
}

impl From<&str> for Arguments {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Arguments {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Json(value) => write!(f, "{value}"),
        }
    }
}

/// One tool call.
///
/// # Examples
/// ```
/// use toolyard_core::Call;
/// let call = Call::new("call_1", "read_file", serde_json::json!({"path": "README.md"}));
/// assert_eq!(call.name.as_ref(), "read_file");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call {
    /// The id that the result carries.
    pub id: CallId,
    /// The provider's own second id, if it has one (the item id of OpenAI Responses).
    pub provider_id: Option<Arc<str>>,
    /// The tool's name.
    pub name: Arc<str>,
    /// The arguments, as received.
    pub arguments: Arguments,
    /// Calls of one tool in one session tree with equal keys run once (ID-1). Must be 1 to 255 visible ASCII
    /// characters, otherwise the call is `invalid_input`. The handler sees it too and can pass it on (RT-9). See
    /// [`IdempotencyKey`](crate::IdempotencyKey).
    pub idempotency_key: Option<Arc<str>>,
    /// Overrides the tool's attempt timeout (V3). Zero is `invalid_input`.
    pub timeout: Option<CallTimeout>,
    /// The time from the start of the call's run to its result, all waits included, after which it is
    /// `deadline_exceeded` (V3). `None` uses the engine's default. Zero is `invalid_input`.
    pub deadline: Option<Duration>,
    /// Fields unknown to the decoder, given back where the provider's format wants them.
    pub passthrough: Option<Box<Map<String, Value>>>,
}

/// A call's own timeout, and what it bounds (V3). No larger than the time alone, because a batch holds one for each of
/// its calls.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::{CallTimeout, TimeoutScope};
/// let timeout = CallTimeout::of_call(Duration::from_secs(5));
/// assert_eq!((timeout.duration(), timeout.scope()), (Duration::from_secs(5), TimeoutScope::Call));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTimeout {
    nanos: u64,
    scope: TimeoutScope,
}

/// What a call's own timeout bounds (V3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutScope {
    /// Each attempt.
    Attempt,
    /// All attempts together, from the start of the first.
    Call,
}

impl CallTimeout {
    /// A timeout of each attempt. More than 500 years are 500 years.
    #[must_use]
    pub fn of_attempt(timeout: Duration) -> Self {
        Self::new(timeout, TimeoutScope::Attempt)
    }

    /// A timeout of all attempts together, with the waits between them. More than 500 years are 500 years.
    #[must_use]
    pub fn of_call(timeout: Duration) -> Self {
        Self::new(timeout, TimeoutScope::Call)
    }

    fn new(timeout: Duration, scope: TimeoutScope) -> Self {
        Self { nanos: u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX), scope }
    }

    /// How long it is.
    #[must_use]
    pub const fn duration(self) -> Duration {
        Duration::from_nanos(self.nanos)
    }

    /// What it bounds.
    #[must_use]
    pub const fn scope(self) -> TimeoutScope {
        self.scope
    }
}

impl Call {
    /// A call with only its id, its tool's name and its arguments: anything that serialises to an object, or the JSON
    /// text of one; see [`Arguments::of`] (KT-16).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::Call;
    /// #[derive(serde::Serialize)]
    /// struct City { name: &'static str }
    /// let calls = [
    ///     Call::new("call_1", "weather", City { name: "Oslo" }),
    ///     Call::new("call_1", "weather", serde_json::json!({"name": "Oslo"})),
    ///     Call::new("call_1", "weather", r#"{"name": "Oslo"}"#), // as a model writes it
    /// ];
    /// assert!(calls[0] == calls[1] && calls[0].arguments.means(&calls[2].arguments));
    /// ```
    pub fn new(id: impl Into<CallId>, name: impl Into<Arc<str>>, arguments: impl Serialize) -> Self {
        Self::with_arguments(id, name, Arguments::of(&arguments))
    }

    /// The same of arguments as they are, which are neither copied nor written.
    pub fn with_arguments(
        id: impl Into<CallId>,
        name: impl Into<Arc<str>>,
        arguments: impl Into<Arguments>,
    ) -> Self {
        Self {
            id: id.into(),
            provider_id: None,
            name: name.into(),
            arguments: arguments.into(),
            idempotency_key: None,
            timeout: None,
            deadline: None,
            passthrough: None,
        }
    }

    /// Sets the key under which calls of one tool in one session tree run once (ID-1): 1 to 255 visible ASCII characters,
    /// otherwise the call is `invalid_input`.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::Call;
    /// let call = Call::new("call_1", "charge", r#"{"cents": 500}"#).idempotency_key("order-17");
    /// assert_eq!(call.idempotency_key.as_deref(), Some("order-17"));
    /// ```
    #[must_use]
    pub fn idempotency_key(mut self, key: impl Into<Arc<str>>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Sets the call's deadline (V3).
    #[must_use]
    pub fn deadline(mut self, within: Duration) -> Self {
        self.deadline = Some(within);
        self
    }

    /// Sets how long the call may take from the start of its first attempt, retries and the waits between them included
    /// (V3). The attempt that is cut off then ends as `timeout`.
    #[must_use]
    pub fn timeout_in_all(mut self, timeout: Duration) -> Self {
        self.timeout = Some(CallTimeout::of_call(timeout));
        self
    }

    /// Sets the call's attempt timeout (V3).
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(CallTimeout::of_attempt(timeout));
        self
    }
}

/// The calls of one model answer, in the order in which the model wrote them.
///
/// # Examples
/// ```
/// use toolyard_core::{Batch, Call};
/// let batch: Batch = ["a", "b"].map(|id| Call::new(id, "echo", "{}")).into_iter().collect();
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    calls: Vec<Call>,
    request: Option<Arc<str>>,
}

impl Batch {
    /// The default limit for calls that run in one batch (CC-4). Calls beyond the limit are answered `overloaded`.
    pub const CALLS_MAX: usize = 10_000;

    /// A batch of these calls.
    pub fn new(calls: Vec<Call>) -> Self {
        Self { calls, request: None }
    }

    /// Says by which key its caller knows the request that has brought it. A recorder is given the key with the batch, so
    /// that a request that comes again after a crash finds what it has made (SM-4). The engine itself does nothing with it.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{Batch, Call};
    /// let batch = Batch::new(vec![Call::new("call_1", "echo", "{}")]).of_request("req-7");
    /// assert_eq!(batch.request(), Some("req-7"));
    /// ```
    #[must_use]
    pub fn of_request(mut self, key: impl Into<Arc<str>>) -> Self {
        self.request = Some(key.into());
        self
    }

    /// The key by which its caller knows the request that has brought it.
    pub fn request(&self) -> Option<&str> {
        self.request.as_deref()
    }

    /// The calls, in order.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The number of calls.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// Whether the batch has no calls. Such a batch has no results (CL-4).
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

impl From<Vec<Call>> for Batch {
    fn from(calls: Vec<Call>) -> Self {
        Self::new(calls)
    }
}

impl FromIterator<Call> for Batch {
    fn from_iter<I: IntoIterator<Item = Call>>(calls: I) -> Self {
        Self::new(calls.into_iter().collect())
    }
}

impl IntoIterator for Batch {
    type Item = Call;
    type IntoIter = std::vec::IntoIter<Call>;

    fn into_iter(self) -> Self::IntoIter {
        self.calls.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// SM-5: arguments that say the same in another spelling are the same. Text that is no JSON is not even the text that
    /// it looks like.
    #[test]
    fn another_spelling_is_the_same() {
        let args = json!({"a": 1, "b": [true]});
        for same in [Arguments::from(r#"{"b":[true], "a":1.0}"#), json!({"b": [true], "a": 1.0}).into()] {
            assert!(same.is(&args), "{same}");
        }
        for other in [Arguments::from("{\"a\":1}"), Arguments::from("{"), json!(null).into()] {
            assert!(!other.is(&args), "{other}");
        }
        assert!(Arguments::from(json!("b")).is(&json!("b")) && !Arguments::from("b").is(&json!("b")));
    }
}
