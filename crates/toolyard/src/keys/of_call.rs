//! A call's key, what is kept under it, and the errors of calls that it answers.

use super::{Fingerprint, Name};
use toolyard_core::{CallError, ErrorKind, Sandbox, ToolOutput};

/// A call's idempotency key in its session tree, and the fingerprint of what it stands for (ID-1, ID-2).
pub(crate) struct KeyOf {
    pub(crate) name: Name,
    pub(crate) fingerprint: Fingerprint,
}

/// A result that is kept for later calls with its key (ID-6).
#[derive(Debug)]
pub(crate) struct RetainedResult {
    pub(crate) status: Result<ToolOutput, Box<CallError>>,
    pub(crate) attempts: u32,
    pub(crate) sandbox: Sandbox,
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
