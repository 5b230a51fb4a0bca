//! A call's key, what is kept under it, and the errors of calls that it answers.

use super::{Fingerprint, Name};
use std::sync::OnceLock;
use toolyard_core::{CallError, ErrorKind, Sandbox, ToolOutput};

/// A call's idempotency key in its session tree, the fingerprint of what it stands for (ID-1, ID-2), and the flight `F`
/// that the call leads or has joined.
pub(crate) struct KeyOf<F> {
    pub(crate) name: Name,
    pub(crate) fingerprint: Fingerprint,
    flight: OnceLock<F>,
}

impl<F> KeyOf<F> {
    /// The key of a call that is on no flight yet.
    pub(crate) fn new(name: Name, fingerprint: Fingerprint) -> Self {
        Self { name, fingerprint, flight: OnceLock::new() }
    }

    /// Puts the call on a flight. It has none, or had this one.
    pub(crate) fn set_flight(&self, flight: F) {
        let _ = self.flight.set(flight);
    }

    /// The flight that the call leads or has joined, if any.
    #[inline]
    pub(crate) fn flight(&self) -> Option<&F> {
        self.flight.get()
    }
}

/// A result that is kept for later calls with its key (ID-6).
#[derive(Debug)]
pub(crate) struct RetainedResult {
    status: RetainedStatus,
    pub(crate) attempts: u32,
    pub(crate) sandbox: Sandbox,
}

#[derive(Debug)]
enum RetainedStatus {
    /// An output that is one text, as most are.
    Text(Box<str>),
    Other(Result<ToolOutput, Box<CallError>>),
}

impl RetainedResult {
    /// Keeps a copy of a result.
    pub(crate) fn of(status: &Result<ToolOutput, Box<CallError>>, attempts: u32, sandbox: Sandbox) -> Self {
        let text = status.as_ref().ok().filter(|output| output.success).and_then(ToolOutput::only_text);
        let status = match text {
            Some(text) => RetainedStatus::Text(text.into()),
            None => RetainedStatus::Other(status.clone()),
        };
        Self { status, attempts, sandbox }
    }

    /// A copy of the result.
    pub(crate) fn status(&self) -> Result<ToolOutput, Box<CallError>> {
        match &self.status {
            RetainedStatus::Text(text) => Ok(ToolOutput::text(&**text)),
            RetainedStatus::Other(status) => status.clone(),
        }
    }
}

/// The error of a call whose key was used with other arguments, or for another version of the tool (ID-2).
pub(crate) fn mismatch_error() -> CallError {
    CallError::new(ErrorKind::KeyMismatch, "this idempotency key was used with other arguments")
}

/// The error of a call that has run under this key and whose result is no longer kept (ID-6).
pub(crate) fn already_executed_error() -> CallError {
    CallError::new(
        ErrorKind::AlreadyExecuted,
        "a call with this idempotency key has already run; its result is no longer kept",
    )
}
