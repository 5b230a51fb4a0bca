//! What may be wrong with a log.

use crate::{CallId, ErrorKind, SessionId, event::GrammarError};
use std::fmt;

/// Something in a log that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogFault {
    /// Where it shows, as the reader was told; of what has not ended, where that began.
    pub at: u64,
    /// The session.
    pub session: SessionId,
    /// The call, where it is about one.
    pub call_id: Option<CallId>,
    /// What it is.
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

/// What does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhatFault {
    /// Numbers are left out.
    #[error("{} before this one, which is {found}", missing(*expected, *found))]
    Gap {
        /// The number that was to come.
        expected: u64,
        /// The one that came.
        found: u64,
    },
    /// A number that was there, or was passed over.
    #[error("event {found} comes after event {last}: it is there twice or out of its place")]
    Again {
        /// The number.
        found: u64,
        /// The highest before it.
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
    /// Something comes after the end of its session.
    #[error("'{0}' comes after the session was closed")]
    AfterClose(&'static str),
    /// An event of a call that says not of which.
    #[error("'{0}' names no call")]
    NoCall(&'static str),
    /// An event of a call that is not open.
    #[error("'{0}' is of a call that did not come in, or has ended")]
    NotOpen(&'static str),
    /// An event out of order.
    #[error(transparent)]
    Grammar(#[from] GrammarError),
    /// An event contradicts one before it.
    #[error("'{event}' has {field} {is}, and {was} was told before")]
    Contradicts {
        /// The event.
        event: &'static str,
        /// What it is about.
        field: &'static str,
        /// What it says.
        is: String,
        /// What was said before.
        was: String,
    },
    /// It runs and is not what was approved (I14).
    #[error("what runs is not what was approved: its digest is {is}, the approved one {was}")]
    NotApproved {
        /// The digest of what runs.
        is: String,
        /// The digest that was approved.
        was: String,
    },
    /// It says of itself that it was approved, or was not, against what was told of it (I14).
    #[error("it says '{says}' of its approval, and {told}")]
    Approval {
        /// What it says.
        says: &'static str,
        /// What was told.
        told: &'static str,
    },
    /// An answer that contradicts itself, or the end that came of it.
    #[error("the question was settled with '{settled}', and the call ended with '{ended}'")]
    Answer {
        /// What the answer was.
        settled: &'static str,
        /// The code of the end.
        ended: ErrorKind,
    },
    /// A number of calls that ended is not the number that was told of.
    #[error("the turn tells of {told} calls {which}, and {found} are there")]
    Turn {
        /// Which calls.
        which: &'static str,
        /// How many it tells of.
        told: usize,
        /// How many there are.
        found: usize,
    },
    /// An end without its begin.
    #[error("the turn was not started, or ended before")]
    NoTurn,
    /// A call without an end.
    #[error("the call has not ended")]
    CallOpen,
    /// A turn without an end.
    #[error("the turn has not ended")]
    TurnOpen,
}

fn missing(expected: u64, found: u64) -> String {
    match found.saturating_sub(1) {
        last if last <= expected => format!("event {expected} is missing"),
        last => format!("events {expected} to {last} are missing"),
    }
}
