//! The error of a call that has no output (V5).

use super::{ErrorKind, Ran, Reaction};
use crate::{Content, ToolOutput, output::of_error};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{borrow::Cow, error::Error, fmt, sync::Arc, time::Duration};

/// What is known about the call's effect on the world (V5, `outcome`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The handler did not start: nothing happened.
    NotStarted,
    /// The handler ran and failed.
    Failed,
    /// The handler was cut off: it may have done everything, part of it or nothing.
    Unknown,
}

/// The specific cause, for codes that have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// Abandoned handlers that still run block this call (CL-3, SC-6).
    Zombie,
    /// Waiting for the call that holds this one's key could mean waiting for itself (ID-3a).
    WouldDeadlock,
    /// An earlier call of the batch failed, and the batch was told to skip the rest (CL-4).
    Predecessor,
    /// Nobody knows what became of an earlier call of the batch: it was running when the engine's process ended (JR-8).
    PredecessorUnknown,
    /// An earlier life of the engine has left its turn open, and nobody has resumed that in time (JR-10).
    Expired,
    /// Events cannot be written, or not fast enough, and nothing may run unrecorded (OB-3, PO-6).
    Sink,
    /// There is no room for results: those that are held take it all (CC-4).
    ResultBudget,
    /// What the call has to leave behind cannot be made durable, or not in time (SM-4, PO-6).
    Journal,
}

/// Why a failure that is eligible for a retry was not retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RetryStopped {
    /// It was the last attempt (RT-1).
    Attempts,
    /// The remote asks for a longer wait than the engine accepts (RT-3).
    Hint,
    /// Another attempt would not fit before the deadline (RT-4).
    Deadline,
    /// The tool's retry bucket, which all agents share, has too few tokens: too many retries are waiting or running, or have
    /// failed (RT-5). [`RetryPolicy::with_bucket`](crate::RetryPolicy::with_bucket) makes it larger.
    Budget,
    /// The handler was abandoned but still runs: a second one beside it might undo its work (SC-6).
    Zombie,
}

/// One place where the arguments do not match the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationError {
    /// JSON pointer into the arguments; empty for the arguments as a whole.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

/// The error of one call.
///
/// It is data for the conversation, never a Rust `Err` that ends the turn (V5).
///
/// # Examples
/// ```
/// use toolyard_core::{CallError, Effect, ErrorKind};
/// let error = CallError::new(ErrorKind::Overloaded, "the queue is full (16384 calls wait)");
/// assert_eq!(error.effect, Effect::NotStarted);
/// assert!(error.retryable);
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallError {
    /// The code.
    #[serde(rename = "code")]
    pub kind: ErrorKind,
    /// One line for the model.
    pub message: String,
    /// How often the handler was started.
    pub attempts: u32,
    /// What is known about the effect.
    #[serde(rename = "outcome")]
    pub effect: Effect,
    /// Whether the caller may send the same call again.
    pub retryable: bool,
    /// How long to wait before that, in milliseconds on the wire.
    #[serde(rename = "retry_after_ms", default, skip_serializing_if = "Option::is_none", with = "millis")]
    pub retry_after: Option<Duration>,
    /// One line of advice for the model.
    pub advice: Cow<'static, str>,
    /// The specific cause, where the code has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Why the call was not retried, where it could have been.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_stopped: Option<RetryStopped>,
    /// The turn with which the call goes on in another life of the engine, if a drain has suspended it: it has not ended,
    /// and must not be sent again (SM-10).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspended: Option<u64>,
    /// The error of the last attempt, for a call that ended before its next one (RT-8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Box<Self>>,
    /// Where the arguments do not match the schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub validation_errors: Vec<ValidationError>,
    /// Whether the message is meant for the user as well as for the model.
    #[serde(rename = "is_user_visible")]
    pub user_visible: bool,
    /// The output that the tool produced, kept whole. Boxed, because most errors have none and thousands may wait.
    #[serde(flatten, with = "of_error")]
    output: Option<Box<ToolOutput>>,
    /// The arguments that ran, if the person who approved the call changed them.
    #[serde(skip)]
    pub(crate) edited: Option<Arc<Value>>,
    /// The cause, for logs; it is not sent on the wire.
    #[serde(skip)]
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl CallError {
    /// An error of this kind, with the effect, the advice and the retry fields that go with it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let effect = match kind.ran() {
            Ran::No => Effect::NotStarted,
            Ran::Yes if matches!(kind, ErrorKind::Timeout | ErrorKind::Panic) => Effect::Unknown,
            Ran::Yes => Effect::Failed,
            Ran::Maybe => Effect::Unknown,
        };
        let retryable = kind.reaction() == Reaction::RetryLater || kind == ErrorKind::ShuttingDown;
        Self {
            kind,
            message: message.into(),
            attempts: 0,
            effect,
            retryable,
            retry_after: retry_after(kind),
            advice: Cow::Borrowed(advice(kind, effect, retryable)),
            reason: None,
            retry_stopped: None,
            suspended: None,
            last_error: None,
            validation_errors: Vec::new(),
            user_visible: kind.terminal_event() == super::TerminalEvent::Denied,
            output: None,
            edited: None,
            source: None,
        }
    }

    /// Marks the call's handler as never started.
    #[must_use]
    pub fn not_started(mut self) -> Self {
        self.set_effect(Effect::NotStarted);
        self.attempts = 0;
        self
    }

    /// Sets what is known of the call's effect. Advice that was not replaced follows it.
    pub fn set_effect(&mut self, effect: Effect) {
        self.advised(|error| error.effect = effect);
    }

    /// Sets whether the caller may send the call again. Advice that was not replaced follows it.
    pub fn set_retryable(&mut self, retryable: bool) {
        self.advised(|error| error.retryable = retryable);
    }

    /// Keeps the advice in step with what it depends on, unless it is somebody else's.
    fn advised(&mut self, change: impl FnOnce(&mut Self)) {
        let ours = |error: &Self| advice(error.kind, error.effect, error.retryable);
        let is_ours = self.advice == ours(self);
        change(self);
        if is_ours {
            self.advice = Cow::Borrowed(ours(self));
        }
    }

    /// Sets how often the handler was started.
    #[must_use]
    pub fn after_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Replaces the advice.
    #[must_use]
    pub fn with_advice(mut self, advice: impl Into<Cow<'static, str>>) -> Self {
        self.advice = advice.into();
        self
    }

    /// Sets the specific cause.
    #[must_use]
    pub fn with_reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// Marks the call as suspended with this turn, which has to be resumed instead of sending the call again (SM-10).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{CallError, ErrorKind};
    /// let error = CallError::new(ErrorKind::ShuttingDown, "the engine is shutting down").suspended_in(7);
    /// assert_eq!((error.suspended, error.retryable, error.retry_after), (Some(7), false, None));
    /// ```
    #[must_use]
    pub fn suspended_in(mut self, turn: u64) -> Self {
        self.suspended = Some(turn);
        self.retry_after = None;
        self.set_retryable(false);
        self.with_advice("The call is kept and runs when its turn is resumed; do not send it again.")
    }

    /// Sets why the call was not retried.
    #[must_use]
    pub fn with_retry_stopped(mut self, why: Option<RetryStopped>) -> Self {
        self.retry_stopped = why;
        self
    }

    /// Adds `last`, the error of the call's last attempt. The effect is the one that was known after that attempt.
    #[must_use]
    pub fn after_error(mut self, last: Box<Self>) -> Self {
        self.attempts = last.attempts;
        self.set_effect(last.effect);
        self.last_error = Some(last);
        self
    }

    /// Adds the output that the tool produced, kept whole (V5). An empty output is dropped.
    #[must_use]
    pub fn with_output(mut self, output: ToolOutput) -> Self {
        self.output = of_error::unless_empty(output);
        self
    }

    /// The output that the tool produced: all of it if the tool reported the failure itself, or what it had produced
    /// before it was stopped.
    pub fn output(&self) -> Option<&ToolOutput> {
        self.output.as_deref()
    }

    /// The same output, mutable; for engines.
    #[doc(hidden)]
    pub fn output_mut(&mut self) -> Option<&mut ToolOutput> {
        self.output.as_deref_mut()
    }

    /// The part of the output that the model reads.
    pub fn content(&self) -> &[Content] {
        self.output().map_or(&[], |output| &output.content)
    }

    /// The approximate size of the output in bytes.
    pub fn output_size(&self) -> usize {
        self.output().map_or(0, ToolOutput::size)
    }

    /// How much memory it takes, in bytes, more or less; for engines.
    #[doc(hidden)]
    pub fn footprint(&self) -> usize {
        let errors: usize =
            self.validation_errors.iter().map(|error| error.pointer.len() + error.message.len()).sum();
        let last = self.last_error.as_ref().map_or(0, |last| last.footprint());
        size_of::<Self>()
            + self.message.len()
            + errors
            + last
            + self.output().map_or(0, ToolOutput::footprint)
    }

    /// What a planner should do next. Of timeouts and transient failures it looks at the attempts: one that may be
    /// repeated may succeed later, unless it has already been repeated in vain.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{CallError, ErrorKind, Reaction, RetryStopped};
    /// let failed = |attempts| CallError::new(ErrorKind::Transient, "HTTP 503").after_attempts(attempts);
    /// assert_eq!(failed(1).reaction(), Reaction::RetryLater);
    /// assert_eq!(failed(3).reaction(), Reaction::Replan);
    /// let put_off = failed(2).with_retry_stopped(Some(RetryStopped::Hint));
    /// assert_eq!(put_off.reaction(), Reaction::RetryLater);
    /// ```
    pub fn reaction(&self) -> Reaction {
        if !matches!(self.kind, ErrorKind::Timeout | ErrorKind::Transient) {
            return self.kind.reaction();
        }
        // The engine has given up early, for a reason that passes.
        let is_put_off = matches!(
            self.retry_stopped,
            Some(RetryStopped::Hint | RetryStopped::Deadline | RetryStopped::Budget)
        );
        match self.retryable && (self.attempts <= 1 || is_put_off) {
            true => Reaction::RetryLater,
            false => Reaction::Replan,
        }
    }

    /// The text the model reads in a format without structure: the message, the output and the advice.
    pub fn to_text(&self) -> String {
        let content = self.output().map(ToolOutput::to_text).unwrap_or_default();
        // If the tool reported the failure itself, the message is the first line of its output.
        let message = if content.starts_with(&self.message) { "" } else { self.message.as_str() };
        let lines = [message, &content, &self.advice];
        lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The default wait before a call that was refused for the moment may be sent again (V4).
const fn retry_after(kind: ErrorKind) -> Option<Duration> {
    match kind {
        ErrorKind::Overloaded | ErrorKind::QueueTimeout => Some(Duration::from_secs(1)),
        ErrorKind::ShuttingDown => Some(Duration::from_secs(30)),
        _ => None,
    }
}

/// The advice that goes with a kind, what is known of the call's effect, and whether it may be sent again; empty where
/// the message says enough.
const fn advice(kind: ErrorKind, effect: Effect, retryable: bool) -> &'static str {
    match kind {
        ErrorKind::NotFound => "Call one of the available tools by its exact name.",
        ErrorKind::InvalidInput => "Correct the arguments and call again.",
        ErrorKind::PermissionDenied | ErrorKind::FsDenied | ErrorKind::NetDenied => {
            "Do not repeat this call; work within what is allowed."
        }
        ErrorKind::UserDenied => "Do not repeat this call; ask the user what to do instead.",
        ErrorKind::ConfirmationTimeout => "Nobody answered in time; ask the user before you call again.",
        ErrorKind::Aborted => "This call was stopped before it ran; choose another way.",
        ErrorKind::BudgetExceeded => "The budget is used up: finish with what you have.",
        ErrorKind::DepthExceeded => "Do this work here instead of in another sub-agent.",
        ErrorKind::SerialNesting => "Make this call after the one it is nested in has ended.",
        ErrorKind::RateLimited | ErrorKind::Transient if !retryable => after_cut(effect, retryable),
        ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::QueueTimeout => {
            "Nothing is wrong with the call; try again later."
        }
        ErrorKind::CircuitOpen => "The tool is failing often; use another or try again later.",
        ErrorKind::ShuttingDown => "The engine is stopping; no call will run.",
        ErrorKind::KeyMismatch => "Use a new idempotency key for other arguments.",
        ErrorKind::KeyInProgress => "The same call is running; wait for its result.",
        ErrorKind::AlreadyExecuted => "The call has already run; check its effect instead of repeating it.",
        ErrorKind::Transient => "The fault may be temporary; try again later.",
        ErrorKind::DeadlineExceeded if matches!(effect, Effect::Failed) => {
            "It changed nothing; it needs more time."
        }
        ErrorKind::Timeout | ErrorKind::DeadlineExceeded => after_cut(effect, retryable),
        ErrorKind::ExecutionError => "",
        ErrorKind::OutputInvalid => "The tool's answer cannot be used.",
        ErrorKind::OutputTooLarge => "Ask for less at a time.",
        ErrorKind::SandboxError if retryable => {
            "It did not start, and the fault may be temporary; try again later."
        }
        ErrorKind::Panic | ErrorKind::Internal | ErrorKind::SandboxError => {
            "This is a fault of the tool or the engine, not of the call."
        }
        ErrorKind::Cancelled => "The call was cancelled.",
        ErrorKind::Interrupted => "The call may have run before a crash; check before you repeat it.",
    }
}

/// The advice after a call that was cut off, or that may not be repeated although its fault may pass.
const fn after_cut(effect: Effect, retryable: bool) -> &'static str {
    match (effect, retryable) {
        (Effect::NotStarted, _) => "It did not start.",
        (Effect::Failed, true) => "It changed nothing; it may be called again.",
        (Effect::Unknown, true) => "It may have done part of its work; repeating it does no harm.",
        (_, false) => "It may have done part of its work; check before you repeat it.",
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("CallError");
        debug.field("kind", &self.kind).field("message", &self.message);
        debug.field("attempts", &self.attempts).field("effect", &self.effect);
        debug
            .field("reason", &self.reason)
            .field("retry_stopped", &self.retry_stopped)
            .field("source", &self.source)
            .finish_non_exhaustive()
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl PartialEq for CallError {
    /// Compares what the wire shows; the source does not count.
    fn eq(&self, other: &Self) -> bool {
        let key = |error: &Self| {
            (
                error.kind,
                error.message.clone(),
                error.attempts,
                error.effect,
                error.retryable,
                error.retry_after,
                error.advice.clone(),
                error.reason,
                (error.retry_stopped, error.suspended),
                error.user_visible,
            )
        };
        key(self) == key(other)
            && self.validation_errors == other.validation_errors
            && self.output == other.output
            && self.last_error == other.last_error
    }
}

mod millis {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(after: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match after {
            Some(after) => to.serialize_u64(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}
