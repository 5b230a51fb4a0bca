//! The closed set of error codes (V4), one row each.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// Whether handler code can have started when a call ends this way (V4, column "ran").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ran {
    /// It did not.
    No,
    /// It did.
    Yes,
    /// It may have; [`CallError::effect`](crate::CallError::effect) says so for a particular call.
    Maybe,
}

/// How the circuit breaker counts an attempt that ended this way (V4, CB-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerVerdict {
    /// The attempt says nothing about the tool.
    Ignored,
    /// The tool answered, even if it answered no.
    Success,
    /// The tool failed.
    Failure,
}

/// The event that ends a call refused this way (V4). A call that has started ends with `tool.failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TerminalEvent {
    /// `tool.failed`
    Failed,
    /// `tool.input_invalid`
    InputInvalid,
    /// `tool.call.denied`
    Denied,
}

/// The error for a text that is not an error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown error code '{0}'")]
pub struct UnknownKind(pub String);

macro_rules! kinds {
    ($( $(#[$doc:meta])* $name:ident = $code:literal, $rpc:literal, $ran:ident, $breaker:ident, $event:ident; )+) => {
        /// Why a call has no output: the closed set of V4.
        ///
        /// The code is also `error.type` in telemetry.
        ///
        /// # Examples
        /// ```
        /// use toolyard_core::ErrorKind;
        /// assert_eq!(ErrorKind::NotFound.code(), "not_found");
        /// assert_eq!("not_found".parse(), Ok(ErrorKind::NotFound));
        /// assert_eq!(ErrorKind::NotFound.json_rpc(), -32601);
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ErrorKind {
            $( $(#[$doc])* #[serde(rename = $code)] $name, )+
        }

        impl ErrorKind {
            /// Every kind, in the order of the table in V4.
            pub const ALL: &'static [Self] = &[$( Self::$name, )+];

            /// The code: a stable snake_case word.
            pub const fn code(self) -> &'static str {
                match self { $( Self::$name => $code, )+ }
            }

            /// The JSON-RPC error code of the engine's own server (V4).
            pub const fn json_rpc(self) -> i32 {
                match self { $( Self::$name => $rpc, )+ }
            }

            /// Whether handler code can have started.
            pub const fn ran(self) -> Ran {
                match self { $( Self::$name => Ran::$ran, )+ }
            }

            /// How the circuit breaker counts an attempt that ended this way.
            pub const fn breaker(self) -> BreakerVerdict {
                match self { $( Self::$name => BreakerVerdict::$breaker, )+ }
            }

            /// The event that ends a call refused this way before it started.
            pub const fn terminal_event(self) -> TerminalEvent {
                match self { $( Self::$name => TerminalEvent::$event, )+ }
            }
        }
    };
}

kinds! {
    /// No tool has this name.
    NotFound = "not_found", -32601, No, Ignored, Failed;
    /// The arguments are not JSON, or do not match the tool's schema.
    InvalidInput = "invalid_input", -32602, No, Ignored, InputInvalid;
    /// Refused by the policy, a capability or the workspace.
    PermissionDenied = "permission_denied", -32603, No, Ignored, Denied;
    /// No grant covers the path.
    FsDenied = "fs_denied", -32603, No, Ignored, Denied;
    /// No grant covers the host.
    NetDenied = "net_denied", -32603, No, Ignored, Denied;
    /// A person refused, or there was no one to ask.
    UserDenied = "user_denied", -32603, No, Ignored, Denied;
    /// Nobody answered in time.
    ConfirmationTimeout = "confirmation_timeout", -32603, No, Ignored, Denied;
    /// A hook refused the call.
    Aborted = "aborted", -32603, No, Ignored, Denied;
    /// The budget of calls or cost is spent.
    BudgetExceeded = "budget_exceeded", -32603, No, Ignored, Denied;
    /// Agents are nested too deeply.
    DepthExceeded = "depth_exceeded", -32603, No, Ignored, Denied;
    /// A serial call inside another serial call that could never get its scope.
    SerialNesting = "serial_nesting", -32603, No, Ignored, Denied;
    /// Too many calls per second, by the tool's own rate (not started) or by the remote's answer 429 (started).
    RateLimited = "rate_limited", -32603, Maybe, Ignored, Failed;
    /// A queue is full.
    Overloaded = "overloaded", -32603, No, Ignored, Failed;
    /// No permit became available in time.
    QueueTimeout = "queue_timeout", -32603, No, Ignored, Failed;
    /// The tool's breaker is open.
    CircuitOpen = "circuit_open", -32603, No, Ignored, Failed;
    /// The engine is draining.
    ShuttingDown = "shutting_down", -32603, No, Ignored, Failed;
    /// The idempotency key was already used with other arguments.
    KeyMismatch = "key_mismatch", -32603, No, Ignored, Failed;
    /// A call with this idempotency key is in flight, and this call may not wait for it.
    KeyInProgress = "key_in_progress", -32603, No, Ignored, Failed;
    /// The call already ran under this key, and its result is no longer kept.
    AlreadyExecuted = "already_executed", -32603, No, Ignored, Failed;
    /// A fault that may pass: a reset connection, a remote 5xx.
    Transient = "transient", -32603, Yes, Failure, Failed;
    /// The attempt took longer than its timeout.
    Timeout = "timeout", -32603, Yes, Failure, Failed;
    /// The tool ran and reported a failure.
    ExecutionError = "execution_error", -32603, Yes, Success, Failed;
    /// The output is not what the tool promises.
    OutputInvalid = "output_invalid", -32603, Yes, Failure, Failed;
    /// The output is larger than its bound.
    OutputTooLarge = "output_too_large", -32603, Yes, Failure, Failed;
    /// The tool panicked.
    Panic = "panic", -32603, Yes, Failure, Failed;
    /// The sandbox itself broke, or cannot do what the grant asks.
    SandboxError = "sandbox_error", -32603, Maybe, Failure, Failed;
    /// The call's deadline passed.
    DeadlineExceeded = "deadline_exceeded", -32603, Maybe, Ignored, Failed;
    /// The call, its turn or its session was cancelled.
    Cancelled = "cancelled", -32603, Maybe, Ignored, Failed;
    /// The call was found unfinished after a crash.
    Interrupted = "interrupted", -32603, Maybe, Ignored, Failed;
    /// A fault of the engine.
    Internal = "internal", -32603, Maybe, Ignored, Failed;
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

impl FromStr for ErrorKind {
    type Err = UnknownKind;

    fn from_str(code: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.iter().find(|kind| kind.code() == code);
        known.copied().ok_or_else(|| UnknownKind(code.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V4: the set is closed and every code reads back as itself.
    #[test]
    fn every_code_is_unique_and_reads_back() {
        assert_eq!(ErrorKind::ALL.len(), 30);
        for kind in ErrorKind::ALL {
            assert_eq!(kind.code().parse(), Ok(*kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.code());
        }
        assert_eq!("nope".parse::<ErrorKind>(), Err(UnknownKind("nope".into())));
    }

    /// V4: an end before the handler starts never counts with the breaker.
    #[test]
    fn what_did_not_run_says_nothing_about_the_tool() {
        for kind in ErrorKind::ALL.iter().filter(|kind| kind.ran() == Ran::No) {
            assert_eq!(kind.breaker(), BreakerVerdict::Ignored, "{kind}");
        }
    }

    /// V4: in JSON-RPC an unknown tool is -32601, bad arguments are -32602, and any other error is -32603.
    #[test]
    fn json_rpc_codes_follow_the_table() {
        for kind in ErrorKind::ALL {
            let code = match kind {
                ErrorKind::NotFound => -32601,
                ErrorKind::InvalidInput => -32602,
                _ => -32603,
            };
            assert_eq!(kind.json_rpc(), code, "{kind}");
        }
    }

    /// V4: policy refusals end as denied, bad arguments as input_invalid, everything else as failed.
    #[test]
    fn terminal_events_follow_the_table() {
        let of = |event| -> Vec<_> {
            let kinds = ErrorKind::ALL.iter().filter(|kind| kind.terminal_event() == event);
            kinds.map(|kind| kind.code()).collect()
        };
        assert_eq!(of(TerminalEvent::InputInvalid), ["invalid_input"]);
        let denied = "permission_denied fs_denied net_denied user_denied confirmation_timeout aborted \
                      budget_exceeded depth_exceeded serial_nesting";
        assert_eq!(of(TerminalEvent::Denied), denied.split_whitespace().collect::<Vec<_>>());
    }
}
