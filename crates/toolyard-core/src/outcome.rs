//! The result of a call.

use crate::{Arguments, Call, CallError, CallId, Elapsed, Routing, Sandbox, ToolOutput, wording};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};

/// Whether a call ran, or shares the result of another call (ID-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dedupe {
    /// The call ran.
    #[default]
    Fresh,
    /// The call shared the run of a call in flight.
    Joined,
    /// The call received the kept result of an earlier call, or its own from an earlier life of the engine (JR-8).
    Replayed,
    /// The call was left open by an earlier life of the engine, and its tool has found that it had done its work (JR-6).
    Reconciled,
}

impl Dedupe {
    /// Whether the call ran.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands a field to this by reference")]
    pub const fn is_fresh(&self) -> bool {
        matches!(self, Self::Fresh)
    }

    /// The word used in events and telemetry for a call that shares the result of another; `None` for one that ran.
    pub const fn shared_as(self) -> Option<&'static str> {
        match self {
            Self::Fresh => None,
            Self::Joined => Some("joined"),
            Self::Replayed => Some("replayed"),
            Self::Reconciled => Some("reconciled"),
        }
    }
}

/// The one result of a call (CL-4, SC-3).
///
/// # Examples
/// ```
/// use toolyard_core::{Call, CallError, ErrorKind, Outcome, Routing, ToolOutput};
/// let call = Call::new("call_1", "weather", "{}");
/// let outcome = Outcome::new(&call, Routing::Read, Ok(ToolOutput::text("sunny")));
/// assert!(outcome.success());
/// assert_eq!(outcome.output(), "sunny");
///
/// let refused = CallError::new(ErrorKind::NotFound, "Tool 'weather' not found. Available: []");
/// let outcome = Outcome::new(&call, Routing::ShortCircuit, Err(refused));
/// assert_eq!(outcome.output()["code"], "not_found");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// The call's id.
    pub call_id: CallId,
    /// The tool's name, as given in the call.
    pub tool: Arc<str>,
    /// The arguments, as received.
    pub arguments: Arguments,
    /// The output, or the error if there is none.
    pub status: Result<ToolOutput, Box<CallError>>,
    /// How the call was routed.
    pub routing: Routing,
    /// The index of its run in the batch, from 0.
    pub run: u32,
    /// How often the handler was started.
    pub attempts: u32,
    queued: Elapsed,
    ran: Elapsed,
    /// Where the call executed.
    pub sandbox: Sandbox,
    /// Whether the call shares another call's run.
    pub dedupe: Dedupe,
    /// Whether a cancel had reached the call before it ended (SC-5).
    pub cancel_requested: bool,
    /// `false` if the engine has a recorder and this result could not be made durable in time: after a crash nobody
    /// would know of it (SM-4).
    pub recorded: bool,
}

impl Outcome {
    /// The outcome of `call`, with no time spent.
    pub fn new(call: &Call, routing: Routing, status: Result<ToolOutput, CallError>) -> Self {
        let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
        Self::of(id, name, arguments, routing, status.map_err(Box::new))
    }

    /// The same as [`new`](Self::new), but consumes the call; for engines.
    #[doc(hidden)]
    #[inline(always)]
    pub fn of_call(call: Call, routing: Routing, status: Result<ToolOutput, Box<CallError>>) -> Self {
        Self::of(call.id, call.name, call.arguments, routing, status)
    }

    #[inline]
    fn of(
        call_id: CallId,
        tool: Arc<str>,
        arguments: Arguments,
        routing: Routing,
        status: Result<ToolOutput, Box<CallError>>,
    ) -> Self {
        Self {
            call_id,
            tool,
            arguments,
            attempts: status.as_ref().map_or_else(|error| error.attempts, |_| 1),
            status,
            routing,
            run: 0,
            queued: Elapsed::default(),
            ran: Elapsed::default(),
            sandbox: Sandbox::Host,
            dedupe: Dedupe::Fresh,
            cancel_requested: false,
            recorded: true,
        }
    }

    /// The time from the start of the call's run until its permits were granted and, with a recorder, its start was durable
    /// (SM-4).
    pub fn queued(&self) -> Duration {
        self.queued.into()
    }

    /// The time from then until its end: from the end of what [`queued`](Self::queued) is.
    pub fn ran(&self) -> Duration {
        self.ran.into()
    }

    /// Sets how long the call waited and ran; for engines.
    #[doc(hidden)]
    #[inline]
    pub fn set_times(&mut self, queued: Elapsed, ran: Elapsed) {
        (self.queued, self.ran) = (queued, ran);
    }

    /// Whether there is an output.
    pub fn success(&self) -> bool {
        self.status.is_ok()
    }

    /// The error, if there is no output.
    pub fn error(&self) -> Option<&CallError> {
        self.status.as_ref().err().map(Box::as_ref)
    }

    /// The output, or a description of the error, as JSON.
    pub fn output(&self) -> Value {
        match &self.status {
            Ok(output) => output.to_value(),
            Err(error) => serde_json::to_value(error).unwrap_or_else(|_| json!({"code": error.kind.code()})),
        }
    }

    /// The text the model reads: that of the output, or that of the error with its advice; after the
    /// [note](Self::note), if there is one.
    ///
    /// # Examples
    /// ```
    /// use serde_json::json;
    /// use toolyard_core::{Call, Outcome, Routing, ToolOutput};
    /// let call = Call::new("call_1", "save", json!({"path": "/etc/hosts"}));
    /// let mut outcome = Outcome::new(&call, Routing::Serial, Ok(ToolOutput::text("saved")));
    /// outcome.set_edited(Some(json!({"path": "hosts"}).into()));
    /// let note = r#"The arguments of this call were changed by the person who approved it: {"path":"hosts"}"#;
    /// assert_eq!(outcome.to_text(), format!("{note}\nsaved"));
    /// ```
    pub fn to_text(&self) -> String {
        let text = match &self.status {
            Ok(output) => output.to_text(),
            Err(error) => error.to_text(),
        };
        match self.note() {
            None => text,
            Some(note) => format!("{note}\n{text}"),
        }
    }

    /// What the model has to be told beside the result: that the arguments were changed.
    pub fn note(&self) -> Option<String> {
        self.edited().map(wording::arguments_changed)
    }

    /// The arguments as they ran, without secrets, if the person who approved the call changed them (SM-5).
    pub fn edited(&self) -> Option<&Value> {
        edited(&self.status).map(Arc::as_ref)
    }

    /// Notes that these arguments ran; for engines and tests.
    #[doc(hidden)]
    pub fn set_edited(&mut self, edited: Option<Arc<Value>>) {
        set_edited(&mut self.status, edited);
    }

    /// Milliseconds from the start of the call's run to its end.
    pub fn duration_ms(&self) -> u64 {
        u64::try_from((self.queued() + self.ran()).as_millis()).unwrap_or(u64::MAX)
    }
}

/// The arguments that ran, of a result; for engines.
#[doc(hidden)]
pub fn edited(status: &Result<ToolOutput, Box<CallError>>) -> Option<&Arc<Value>> {
    match status {
        Ok(output) => output.edited(),
        Err(error) => error.edited.as_ref(),
    }
}

/// Notes in a result that these arguments ran, or none but the call's own; for engines.
#[doc(hidden)]
#[inline]
pub fn set_edited(status: &mut Result<ToolOutput, Box<CallError>>, edited: Option<Arc<Value>>) {
    match status {
        Ok(output) => output.set_edited(edited),
        Err(error) => error.edited = edited,
    }
}
