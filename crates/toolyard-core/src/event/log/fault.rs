//! The faults that a log can have.

use crate::{CallId, ErrorKind, SessionId, event::GrammarError};
use std::fmt;

/// A fault in a log, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogFault {
    /// The position of the event that reveals the fault, as passed to the checker; for a call or turn that has not
    /// ended, the position of its start.
    pub at: u64,
    /// The session.
    pub session: SessionId,
    /// The call, if the fault concerns one.
    pub call_id: Option<CallId>,
    /// The fault.
    pub what: WhatFault,
}

impl fmt::Display for LogFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {}", self.session)?;
        if let Some(call) = &self.call_id {
            write!(f, ", call {call}")?;
        }
        write!(f, ": {}", self.what)
    }
}

/// What is inconsistent in a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhatFault {
    /// Sequence numbers are missing.
    #[error("{} before event {found}", missing(*expected, *found))]
    Gap {
        /// The number that was expected.
        expected: u64,
        /// The number that was found.
        found: u64,
    },
    /// A sequence number appears twice or out of order.
    #[error("event {found} comes after event {last}: it is duplicated or out of order")]
    Again {
        /// The number.
        found: u64,
        /// The highest number before it.
        last: u64,
    },
    /// An event is earlier than the one before it.
    #[error("its {clock} runs backwards, from {before} to {now}")]
    Backwards {
        /// The field.
        clock: &'static str,
        /// The time before.
        before: u64,
        /// The time now.
        now: u64,
    },
    /// Two events have one position in the engine's life (SM-9).
    #[error("another event has its position {0}")]
    Position(u64),
    /// An event has no position: it was never published (SM-9).
    #[error("it has no position")]
    NoPosition,
    /// Events are missing that the numbers of their sessions do not show (SM-9).
    #[error("{}", cut(*missing, *first, *last))]
    Cut {
        /// How many.
        missing: u64,
        /// The first position that is missing.
        first: u64,
        /// The last one.
        last: u64,
    },
    /// An event comes after the end of its session.
    #[error("'{0}' comes after the session was closed")]
    AfterClose(&'static str),
    /// An event of a call does not say which call.
    #[error("'{0}' has no call id")]
    NoCall(&'static str),
    /// An event belongs to a call that is not open.
    #[error("'{0}' belongs to a call that was not received or has ended")]
    NotOpen(&'static str),
    /// An event is out of order.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// An event contradicts an earlier one.
    #[error("'{event}' has {field} {is}, expected {was}")]
    Contradicts {
        /// The name of the event.
        event: &'static str,
        /// The field that differs.
        field: &'static str,
        /// The value in this event.
        is: String,
        /// The value in the earlier event.
        was: String,
    },
    /// A call runs that is not the one that was approved (I14).
    #[error("the call that runs is not the one approved: its digest is {is}, the approved digest is {was}")]
    NotApproved {
        /// The digest of what runs.
        is: String,
        /// The digest that was approved.
        was: String,
    },
    /// A call's statement about its approval does not match the confirmation events (I14).
    #[error("it states approval '{says}', but {told}")]
    Approval {
        /// What `tool.called` states.
        says: &'static str,
        /// What the confirmation events say.
        told: &'static str,
    },
    /// The answer to a confirmation does not match how the call ended.
    #[error("the question was settled with '{settled}', but the call ended with '{ended}'")]
    Answer {
        /// The answer.
        settled: &'static str,
        /// The code with which the call ended.
        ended: ErrorKind,
    },
    /// A turn reports a number of calls that differs from the number found.
    #[error("the turn reports {told} calls {which}, but {found} were found")]
    Turn {
        /// Which calls are counted.
        which: &'static str,
        /// The number reported.
        told: usize,
        /// The number found.
        found: usize,
    },
    /// A turn ended that was not open.
    #[error("the turn was not started or has already ended")]
    NoTurn,
    /// A call has not ended.
    #[error("the call has not ended")]
    CallOpen,
    /// A turn has not ended.
    #[error("the turn has not ended")]
    TurnOpen,
}

fn cut(missing: u64, first: u64, last: u64) -> String {
    let number = if missing == 1 { "1 event more is" } else { &format!("{missing} events more are") };
    let place =
        if first == last { format!("position {first}") } else { format!("positions {first} to {last}") };
    format!("{number} missing than the sessions show, at {place}")
}

fn missing(expected: u64, found: u64) -> String {
    match found.saturating_sub(1) {
        last if last <= expected => format!("event {expected} is missing"),
        last => format!("events {expected} to {last} are missing"),
    }
}
