//! What a recorder gives back to another life of the engine (JR-5, JR-8, JR-10).
//!
//! ```text
//!   a name ──────► Past       the numbers to go on from, and the keys that were used
//!   a turn ──────► PastTurn   its batches ─► their calls ─► attempts, questions, ends
//!   everything ──► OpenTurn   what was left open, to choose from
//! ```

use serde_json::Value;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolyard_core::{
    AgentPath, Answer, Call, CallDigest, CallError, Dedupe, RequestId, Routing, Sandbox, SessionId,
    SideEffects, ToolOutput, event::Epoch,
};

/// What is known of a session's name. The default is that of a name that was never used.
#[derive(Debug, Clone, Default)]
pub struct Past {
    /// Whether a session of this name was opened in an earlier life of the engine, and not only in this one.
    pub is_known: bool,
    /// The highest number of a turn.
    pub turns: u64,
    /// The highest number of a batch.
    pub batches: u64,
    /// The highest number of a sub-agent that nobody has named.
    pub forks: u64,
    /// The idempotency keys under which something has run, each once, with what came of it last.
    pub keys: Vec<PastKey>,
    /// How many turns earlier lives have left open.
    pub open_turns: u64,
    /// How many of their calls that change something were started and have no result.
    pub interrupted: u64,
}

/// A key that was used.
#[derive(Debug, Clone)]
pub struct PastKey {
    /// The tool.
    pub tool: Arc<str>,
    /// The key.
    pub key: Arc<str>,
    /// The arguments of the call that have passed its layers, before a person has changed them.
    pub arguments: Value,
    /// What is known of it.
    pub state: PastKeyState,
}

/// What is known of a call with a key.
#[derive(Debug, Clone)]
pub enum PastKeyState {
    /// It was started.
    Started {
        /// The version of the tool then.
        version: String,
        /// Whether running it twice does no harm.
        is_repeatable: bool,
        /// What came of it.
        end: PastKeyEnd,
    },
    /// It may have been started, and its attempt is not recorded (JR-7): with which version of the tool, and whether it may
    /// be repeated, is not known.
    Unsure,
}

/// What came of a call with a key that was started.
#[derive(Debug, Clone)]
pub enum PastKeyEnd {
    /// It has ended, with this result.
    Ended {
        /// The result.
        status: Result<ToolOutput, CallError>,
        /// How often its handler was started.
        attempts: u32,
        /// Where it ran.
        sandbox: Sandbox,
        /// Whether the handler itself says that its last attempt changed nothing.
        no_side_effect: bool,
    },
    /// It has ended, and its result is not kept any more.
    Expired,
    /// It has no result.
    Open,
}

/// A turn that was left open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTurn {
    /// Its session.
    pub session: SessionId,
    /// Whether somebody has named that.
    pub is_named: bool,
    /// Its agent.
    pub agent: AgentPath,
    /// Its number in its session.
    pub turn: u64,
    /// The keys of the requests that have brought its batches ([`Batch::of_request`](toolyard_core::Batch::of_request)).
    pub requests: Vec<Arc<str>>,
    /// How many of its calls have not ended.
    pub open_calls: u64,
}

/// A turn, as far as it has come.
#[derive(Debug, Clone)]
pub struct PastTurn {
    /// Its agent.
    pub agent: AgentPath,
    /// Its number in its session.
    pub turn: u64,
    /// The life of the engine that has recorded it last.
    pub epoch: Option<Epoch>,
    /// Whether it was cancelled: what comes of it later is too.
    pub is_cancelled: bool,
    /// When its first batch came, if that is known.
    pub began: Option<SystemTime>,
    /// When the last of its calls ended, if all have and that is known.
    pub ended: Option<SystemTime>,
    /// Its batches that came from outside of all calls, in the order in which they came.
    pub batches: Vec<PastBatch>,
}

/// A batch of a turn.
#[derive(Debug, Clone)]
pub struct PastBatch {
    /// Its number in its session.
    pub batch: u64,
    /// The key of the request that has brought it.
    pub request: Option<Arc<str>>,
    /// Whether every call has a run of its own.
    pub is_sequential: bool,
    /// Whether its calls are answered with the results that equal ones of the turn have (CL-8).
    pub is_resend: bool,
    /// Whether calls were still to come.
    pub is_open: bool,
    /// Its calls, in their order.
    pub calls: Vec<PastCall>,
}

/// A call of a batch.
#[derive(Debug, Clone)]
pub struct PastCall {
    /// The call, as its caller sent it.
    pub call: Call,
    /// Whether it was cancelled, by itself or with its batch, its turn, its session.
    pub is_cancelled: bool,
    /// Whether it may have been started although no attempt is recorded: the records of its end of time are not
    /// certain (JR-7).
    pub is_unsure: bool,
    /// Whether its handler has dispatched calls, in its own turn or in another, by itself or through a sub-agent.
    pub has_dispatched: bool,
    /// Its attempts, the first first.
    pub attempts: Vec<PastAttempt>,
    /// Its end.
    pub end: Option<Box<PastEnd>>,
    /// The question about it that was asked last.
    pub question: Option<PastQuestion>,
    /// How often its tool was asked what became of it.
    pub reconciled: u32,
    /// What the tool has said that it had done, if that is recorded.
    pub done: Option<ToolOutput>,
}

/// A start of a call's handler.
#[derive(Debug, Clone)]
pub struct PastAttempt {
    /// Its number, from 1.
    pub attempt: u32,
    /// The version of the tool.
    pub version: String,
    /// The worst that the tool can do.
    pub side_effects: SideEffects,
    /// Whether an attempt whose effect is unknown may be repeated.
    pub is_repeatable: bool,
    /// Whether the tool spawns sub-agents.
    pub is_recursive: bool,
    /// The key of the call, its own or the one that its tool has derived.
    pub key: Option<Arc<str>>,
    /// What it ran with.
    pub arguments: Value,
    /// How long it might still have taken, now.
    pub time_left: Duration,
    /// The error that it has ended with, if another attempt was to follow.
    pub retried_after: Option<CallError>,
}

/// The end of a call.
#[derive(Debug, Clone)]
pub struct PastEnd {
    /// The result.
    pub status: Result<ToolOutput, CallError>,
    /// How often its handler was started.
    pub attempts: u32,
    /// Whether the result is another call's.
    pub dedupe: Dedupe,
    /// How it was routed.
    pub routing: Routing,
    /// Where it ran.
    pub sandbox: Sandbox,
    /// Whether a cancel had reached it.
    pub cancel_requested: bool,
    /// How long it waited.
    pub queued: Duration,
    /// How long it ran.
    pub ran: Duration,
}

/// A question about a call.
#[derive(Debug, Clone)]
pub struct PastQuestion {
    /// Its id.
    pub request: RequestId,
    /// The answer, with the digest of what it is about.
    pub answer: Option<(CallDigest, Answer)>,
    /// The links that its request had ([`ApprovalRequest::links`](crate::ApprovalRequest::links)) when it was answered, as
    /// texts.
    pub links: Vec<String>,
}
