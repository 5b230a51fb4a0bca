//! What a journal tells.

use crate::settings::Durability;
use serde_json::Value;
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolyard::{
    AgentPath, Arguments, Call, CallDigest, CallError, CallId, Decision, Dedupe, RequestId, Routing, Sandbox,
    SessionId, SideEffects, ToolOutput,
    event::{Approval, SettledBy},
};

/// An opening of the journal (JR-4).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EpochRow {
    /// Its number, from 1.
    pub epoch: i64,
    /// The epoch of the engine whose recorder it was, if one has begun.
    pub engine: Option<String>,
    /// Which start of the machine it was in, where the system says so (JR-7).
    pub boot_id: Option<String>,
    /// The process.
    pub pid: u32,
    /// What its records survive.
    pub durability: Durability,
    /// When it began.
    pub started: SystemTime,
    /// When it was closed; `None` if it is open, or has ended uncleanly.
    pub ended: Option<SystemTime>,
}

/// A session that was opened.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SessionRow {
    /// The epoch.
    pub epoch: i64,
    /// Its name.
    pub session: SessionId,
    /// Whether somebody has named it (SM-8).
    pub is_named: bool,
    /// Its settings, without confirmations, which the program sets again. Its budgets are the limits that were set
    /// ([`Budgets`](toolyard::Budgets)), not what is left of them.
    pub terms: Value,
    /// When.
    pub opened: SystemTime,
    /// Its sub-agents, in the order in which they were made.
    pub forks: Vec<ForkRow>,
}

/// A sub-agent.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ForkRow {
    /// The agent.
    pub agent: AgentPath,
    /// Its parent.
    pub parent: AgentPath,
    /// Whether somebody has named it.
    pub is_named: bool,
    /// Its settings.
    pub terms: Value,
    /// When it was made.
    pub made: SystemTime,
}

/// A turn that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTurn {
    /// The epoch that has recorded it.
    pub epoch: i64,
    /// Its session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentPath,
    /// Its number in its session.
    pub turn: u64,
    /// How many of its calls have not ended. None, if all that is open is the input of a batch.
    pub open_calls: u64,
}

/// A turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Turn {
    /// The epoch that has recorded it.
    pub epoch: i64,
    /// Its session.
    pub session: SessionId,
    /// Its number in its session.
    pub turn: u64,
    /// Its batches, in the order in which they came.
    pub batches: Vec<BatchRow>,
    /// What was cancelled in its session, of this turn or of another.
    pub cancels: Vec<CancelRow>,
}

/// A cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the engine's `Cancelled`, and whose calls they are")]
pub enum CancelRow {
    /// All calls of the agent and of its sub-agents.
    Session { agent: AgentPath },
    /// Those in flight then.
    InFlight { agent: AgentPath },
    /// All calls of a turn.
    Turn { agent: AgentPath, turn: u64 },
    /// The calls of a batch.
    Batch { agent: AgentPath, batch: u64 },
    /// The calls in flight then that had this id.
    Calls { agent: AgentPath, turn: Option<u64>, id: CallId },
    /// One call.
    Call { agent: AgentPath, turn: u64, batch: u64, place: u32 },
}

/// A batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BatchRow {
    /// Its number in its session.
    pub batch: u64,
    /// Its agent.
    pub agent: AgentPath,
    /// The key by which its caller knows the request that has brought it.
    pub request: Option<Arc<str>>,
    /// The batch and the place of the call whose handler has dispatched it.
    pub parent: Option<(u64, u32)>,
    /// Whether calls were still to come.
    pub is_open: bool,
    /// Whether every call has a run of its own.
    pub is_sequential: bool,
    /// Whether its calls are answered with the results that equal ones of the turn have (CL-8).
    pub is_resend: bool,
    /// When it came.
    pub arrived: SystemTime,
    /// Its calls, in their order.
    pub calls: Vec<CallRow>,
}

/// A call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallRow {
    /// Its place in its batch, from 0.
    pub place: u32,
    /// The call as it was sent.
    pub call: Call,
    /// How far it has come.
    pub state: CallState,
    /// Whether a cancel has reached it: it was open when one came that was for it, or its session, its turn or its batch was
    /// cancelled before. What its handler has dispatched ends with it, and need not be cancelled itself.
    pub is_cancelled: bool,
    /// The questions about it, each with its answer.
    pub questions: Vec<QuestionRow>,
    /// Whether its handler has dispatched calls, in its own turn or in another.
    pub has_dispatched: bool,
    /// What was found out about it by a later epoch.
    pub verdict: Option<Verdict>,
    /// How often that was asked.
    pub asked: u32,
}

/// How far a call has come.
#[derive(Debug, Clone)]
pub enum CallState {
    /// No attempt is recorded: one that changes something has certainly not been started. The attempts of plain reads are
    /// not recorded.
    NotStarted,
    /// It was started, and has no result.
    Attempted {
        /// Its attempts, the first first; none of a read whose handler has dispatched calls.
        attempts: Vec<AttemptRow>,
    },
    /// It has its result.
    Ended(Box<EndRow>),
}

/// The end of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EndRow {
    /// The result.
    pub status: Result<ToolOutput, CallError>,
    /// Its attempts that are recorded.
    pub attempts: Vec<AttemptRow>,
    /// How often its handler was started.
    pub started: u32,
    /// Whether the result is another call's.
    pub dedupe: Dedupe,
    /// How it was routed.
    pub routing: Routing,
    /// Its run.
    pub run: u32,
    /// Where it ran.
    pub sandbox: Sandbox,
    /// Whether a cancel had reached it.
    pub cancel_requested: bool,
    /// How long it waited, to the microsecond.
    pub queued: Duration,
    /// How long it ran, to the microsecond.
    pub ran: Duration,
    /// When.
    pub ended: SystemTime,
}

/// A start of a call's handler.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AttemptRow {
    /// Its number, from 1.
    pub attempt: u32,
    /// The version of the tool.
    pub version: String,
    /// The worst that it can do.
    pub side_effects: SideEffects,
    /// Whether an attempt whose effect is unknown may be repeated.
    pub is_repeatable: bool,
    /// Whether it spawns sub-agents.
    pub is_recursive: bool,
    /// The call's idempotency key, or the one that its tool has derived.
    pub key: Option<Arc<str>>,
    /// What a call costs.
    pub cost: Option<u64>,
    /// Where it ran.
    pub sandbox: Sandbox,
    /// What it ran with.
    pub arguments: Value,
    /// How it was approved, if that was needed.
    pub approval: Option<Approval>,
    /// The digest of what ran, if it was asked about.
    pub digest: Option<CallDigest>,
    /// How long it might take.
    pub timeout: Duration,
    /// When it was recorded, just before it began.
    pub started: SystemTime,
    /// Its end, if that was recorded: that of the last attempt of a call is the call's.
    pub end: Option<AttemptRowEnd>,
}

/// The end of an attempt that is not its call's.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AttemptRowEnd {
    /// What it ended with.
    pub status: Result<ToolOutput, CallError>,
    /// Whether another was to follow.
    pub is_retried: bool,
    /// When.
    pub ended: SystemTime,
}

/// A question about a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QuestionRow {
    /// Its id.
    pub request: RequestId,
    /// The digest of what was asked about last.
    pub digest: CallDigest,
    /// The arguments that were shown.
    pub arguments: Value,
    /// The question of another call that it shares.
    pub shares: Option<RequestId>,
    /// How long an answer was waited for.
    pub expires_in: Duration,
    /// When it was asked last.
    pub asked: SystemTime,
    /// The answer.
    pub answer: Option<AnswerRow>,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerRow {
    /// What it says.
    pub decision: Decision,
    /// The digest of what it is about.
    pub digest: CallDigest,
    /// Who has given it.
    pub who: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The arguments with which the call runs instead of its own.
    pub edited: Option<Arguments>,
    /// Whether it was given to this question.
    pub settled_by: SettledBy,
    /// When.
    pub answered: SystemTime,
    /// The links that its request had, as texts: the paths of the call that do not lead where their names say.
    pub links: Vec<String>,
}

/// What was found out about a call that was left open.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It has done its work, with this output.
    Done(ToolOutput),
    /// It has done nothing.
    NotDone,
    /// Nobody knows.
    Unknown,
}
