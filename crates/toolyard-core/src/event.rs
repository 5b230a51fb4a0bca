//! The events of calls, as a stream of facts (OB-1, OB-1b, OB-2).
//!
//! ```text
//! tool.call.received
//!   ├─► tool.input_invalid ■   tool.call.denied ■   tool.failed ■   tool.completed ■ (joined, replayed)
//!   ├─► [confirmation_requested [─► confirmation_resolved]] ─► call.suspended ■
//!   └─► [confirmation_requested ─► confirmation_resolved]
//!         ├─► denied ■   failed ■   completed ■ (joined, replayed)
//!         └─► tool.called ─► ( dispatch.attempt ─► output_delta* ─► [retry] )+ ─► completed ■   failed ■
//! ■ ends the call, exactly once; only dispatch.late_result may follow. A suspended call goes on in another life (SM-10)
//! ```
//!
//! [`EventKind`] has every kind with its fields beside the common ones of [`Event`].
//!
//! Other vocabularies call `tool.called` ToolCallStart or tool.call.dispatched (audit), `tool.completed` ToolCallEnd
//! and `tool.failed` ToolCallFailed; see [`EventKind::aliases`].
//!
//! `docs/events.md` in the repository has a table of them for readers of event files, with an example of each kind, and
//! `docs/events.schema.json` is a JSON Schema of it. [`Line`] reads one line of such a file, and [`LogChecker`] checks
//! that the file as a whole is consistent.
//!
//! A `digest` is the [`CallDigest`](crate::CallDigest) of the call. It is present if a sink keeps the events or the
//! call needs approval, and made when somebody [asks](EventKind::digest) for it or writes the event. For a call that was refused it covers the text of the arguments, otherwise everything that
//! would run.

mod confirmation;
mod cursor;
mod details;
mod display;
mod epoch;
mod grammar;
mod kind;
mod line;
mod log;
#[cfg(test)]
mod record;

pub use confirmation::{ConfirmationRequest, ConfirmationResolution, SettledBy};
pub use cursor::{Cursor, CursorError};
pub use details::{CallDetails, DETAIL_BYTES_MAX, DETAIL_FILES_MAX};
pub use epoch::{Epoch, EpochError};
pub use grammar::{CallGrammar, GrammarError};
pub use kind::{Approval, DrainStep, EventKind, Failure};
pub use line::{Line, LineError, Stranger};
pub use log::{LogChecker, LogCounts, LogFault, WhatFault};

use crate::{AgentPath, CallId, SessionId};
use serde::{Deserialize, Serialize};

/// The session name under which an engine reports events of its own.
pub const ENGINE_SESSION: &str = "@engine";

/// The version of the event format, present in every event.
pub const SCHEMA_VERSION: u16 = 1;

/// One event: what happened, and the fields that all events have in common (OB-2).
///
/// # Examples
/// ```
/// use toolyard_core::{AgentPath, Event, EventKind, SessionId};
/// let event = Event::new(SessionId::from("demo"), AgentPath::root(), EventKind::SessionOpened);
/// assert_eq!(event.kind.name(), "session.opened");
/// assert!(!event.kind.is_failure());
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// The version of the event format.
    pub v: u16,
    /// The event's number in its session, from 1 and without gaps; 0 for `engine.started`.
    pub seq: u64,
    /// The event's position among all events of the engine's life, from 1 and without gaps; 0 for `engine.started`, and
    /// for an event that is not published. Together with the engine's [`Epoch`] it is a [`Cursor`] (SM-9).
    pub position: u64,
    /// Wall time in milliseconds since 1970.
    pub wall_ms: u64,
    /// Monotonic time in microseconds since the engine was built.
    pub mono_us: u64,
    /// The session.
    pub session: SessionId,
    /// The agent in the session.
    pub agent: AgentPath,
    /// The turn's number in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The batch's number in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// The index of the run in the batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
    /// The call's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The call's index in its batch, which tells duplicate ids apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The attempt's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

impl Event {
    /// An event of an agent in a session, not yet numbered or timed.
    pub fn new(session: SessionId, agent: AgentPath, kind: EventKind) -> Self {
        Self {
            v: SCHEMA_VERSION,
            seq: 0,
            position: 0,
            wall_ms: 0,
            mono_us: 0,
            session,
            agent,
            turn: None,
            batch: None,
            run: None,
            call_id: None,
            index: None,
            attempt: None,
            kind,
        }
    }
}
