//! What happens to calls, as a stream of facts (OB-1, OB-1b, OB-2).
//!
//! ```text
//! tool.call.received ─┬─► tool.input_invalid ■   tool.call.denied ■   tool.failed ■   tool.completed ■ (joined, replayed)
//!                     └─► [confirmation_requested ─► confirmation_resolved] ─┬─► denied ■, failed ■, completed ■ (joined, replayed)
//!                                                                            └─► tool.called ─► ( dispatch.attempt ─► output_delta* ─► [retry] )+ ─► completed ■, failed ■
//! ■ ends the call, exactly once; only dispatch.late_result may follow
//! ```
//!
//! | kind | fields beside the common ones | also known as |
//! |---|---|---|
//! | `tool.call.received` | tool_name, bytes, digest? | |
//! | `tool.input_invalid`, `tool.call.denied`, `tool.failed` | tool_name, code, class, message, outcome, attempts, reason?, queue_ms, duration_ms, dedupe? | ToolCallFailed (`tool.failed`) |
//! | `tool.confirmation_requested` | tool_name, side_effects, expires_ms, request, digest, arguments | |
//! | `tool.confirmation_resolved` | approved, error?, by?, digest? | |
//! | `tool.called` | tool_name, side_effects, class, queue_ms, policy_version, approval?, digest? | tool.call.dispatched (audit), ToolCallStart |
//! | `dispatch.attempt` | | |
//! | `tool.output_delta` | text | |
//! | `dispatch.retry` | delay_ms, code | |
//! | `tool.completed` | tool_name, duration_ms, queue_ms, bytes, dedupe, sandbox, cancel_requested | ToolCallEnd |
//! | `dispatch.late_result` | ok | |
//! | `breaker.transition` | tool_name or backend, from, to | |
//! | `zombies.released` | tool_name, count | |
//! | `policy.changed` | version | |
//! | `pool.resized` | class, from, to | |
//! | `session.opened`, `session.closed` | | |
//! | `turn.started` | calls | |
//! | `turn.ended` | ok, failed | |
//! | `turn.cancelled` | | |
//! | `agent.forked`, `agent.joined` | child | |
//! | `engine.drain` | step | |
//!
//! A `digest` is the [`CallDigest`](crate::CallDigest) of the call, there where a sink keeps the events or somebody is
//! asked: over its text for a call that was refused, over all that would run for one that was not.

mod grammar;
mod kind;

pub use grammar::{CallGrammar, GrammarError};
pub use kind::{Approval, DrainStep, EventKind, Failure, SettledBy};

use crate::{AgentPath, CallId, SessionId};
use serde::{Deserialize, Serialize};

/// The version of the event's shape, in every event.
pub const SCHEMA_VERSION: u16 = 1;

/// One fact, with the fields all have in common (OB-2).
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
    /// The version of this shape.
    pub v: u16,
    /// Gap-free in the session, from 1.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// Microseconds since the engine was built.
    pub mono_us: u64,
    /// The session.
    pub session: SessionId,
    /// The agent in it.
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
    /// The call's place in its batch, which tells duplicate ids apart.
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
    /// A fact about an agent's session, not yet numbered or timed.
    pub fn new(session: SessionId, agent: AgentPath, kind: EventKind) -> Self {
        Self {
            v: SCHEMA_VERSION,
            seq: 0,
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
