//! What a recorder is given. Everything is borrowed: a recorder copies what it keeps.

use crate::config::Budgets;
use serde_json::Value;
use std::{collections::BTreeSet, num::NonZeroUsize, sync::Arc, time::Duration};
use toolyard_core::{
    AgentPath, Answer, ApprovalRequest, Call, CallDigest, CallError, CallId, Capabilities, Confinement,
    Confirmations, Dedupe, RequestId, Routing, Sandbox, SessionId, ToolOutput, ToolSpec,
    event::{Approval, SettledBy},
};

/// Which call a record is about. Session, batch and index name it in one life of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallPlace<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its agent.
    pub agent: &'a AgentPath,
    /// Its turn.
    pub turn: u64,
    /// Its batch.
    pub batch: u64,
    /// Its place in the batch, from 0.
    pub index: u32,
    /// The id that its caller gave it.
    pub call_id: &'a CallId,
}

impl<'a> CallPlace<'a> {
    /// The place of a call, with the fields in their order: for whoever takes calls up that another life of the engine has
    /// recorded ([`VerdictRecord`]).
    ///
    /// # Examples
    /// ```
    /// use toolyard::{AgentPath, CallId, CallPlace, SessionId};
    /// let (session, agent, call_id) = (SessionId::from("demo"), AgentPath::root(), CallId::from("call_1"));
    /// let place = CallPlace::new(&session, &agent, 2, 3, 0, &call_id);
    /// assert_eq!((place.turn, place.batch, place.index), (2, 3, 0));
    /// ```
    pub fn new(
        session: &'a SessionId,
        agent: &'a AgentPath,
        turn: u64,
        batch: u64,
        index: u32,
        call_id: &'a CallId,
    ) -> Self {
        Self { session, agent, turn, batch, index, call_id }
    }
}

/// The settings with which a session or a sub-agent begins, as far as they can be written down: resources and workspaces
/// are values of the embedder.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SessionTerms {
    /// The only tools that it knows of, if it was limited to some.
    pub only_tools: Option<BTreeSet<Arc<str>>>,
    /// What it may touch, if it was narrowed.
    pub capabilities: Option<Arc<Capabilities>>,
    /// Its role.
    pub role: Option<Arc<str>>,
    /// How many of its calls may run at once, if it has a bound of its own.
    pub max_in_flight: Option<NonZeroUsize>,
    /// The same for its whole tree; of root sessions.
    pub tree_max_in_flight: Option<NonZeroUsize>,
    /// How many of its calls are granted a round; of root sessions.
    pub weight: u8,
    /// What it may spend, if that was set; of root sessions.
    pub budgets: Option<Budgets>,
    /// Which of its calls need confirmation, if that was set; of root sessions.
    pub confirmations: Option<Confirmations>,
    /// Whether it shares its parent's concurrent pool; of sub-agents.
    pub shares_concurrent: bool,
    /// What whoever opened it [wants to know again](crate::SessionOptions::described) in another life of the engine.
    pub description: Option<Arc<str>>,
}

/// A session that is opened.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SessionRecord<'a> {
    /// Its name.
    pub session: &'a SessionId,
    /// Whether somebody has named it, so that it can be found again by its name (SM-8).
    pub is_named: bool,
    /// Its settings.
    pub terms: &'a SessionTerms,
}

/// A sub-agent that is made.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ForkRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its parent.
    pub parent: &'a AgentPath,
    /// The agent.
    pub agent: &'a AgentPath,
    /// Whether somebody has named it (SM-8).
    pub is_named: bool,
    /// The call whose handler makes it, if one does: it ends with that call.
    pub made_by: Option<CallPlace<'a>>,
    /// Its settings.
    pub terms: &'a SessionTerms,
}

/// A batch that has arrived, or is opened for calls to come.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BatchRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its agent.
    pub agent: &'a AgentPath,
    /// Its turn.
    pub turn: u64,
    /// Its number in its session.
    pub batch: u64,
    /// The key by which its caller knows the request that has brought it ([`Batch::of_request`](toolyard_core::Batch::of_request)).
    pub request: Option<&'a str>,
    /// The call whose handler has dispatched it, if one has.
    pub parent: Option<CallPlace<'a>>,
    /// Its calls as their caller sent them, those included that do not run; none of an open batch.
    pub calls: Vec<&'a Call>,
    /// Whether calls are still to come: [`pushed`](super::Recorder::pushed) gives them, [`closed`](super::Recorder::closed)
    /// ends them.
    pub is_open: bool,
    /// Whether every call has a run of its own.
    pub is_sequential: bool,
    /// Whether its calls are answered with the results that equal ones of the turn have (CL-8): the records of these ends
    /// come later.
    pub is_resend: bool,
}

/// Calls of an open batch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PushRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its agent.
    pub agent: &'a AgentPath,
    /// Its turn.
    pub turn: u64,
    /// The batch.
    pub batch: u64,
    /// The place of the first of them.
    pub index: u32,
    /// The calls, as their caller sent them.
    pub calls: Vec<&'a Call>,
}

/// The end of an open batch's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CloseRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its agent.
    pub agent: &'a AgentPath,
    /// Its turn.
    pub turn: u64,
    /// The batch.
    pub batch: u64,
    /// How many calls it has.
    pub calls: u32,
    /// The key by which its caller knows the request that has brought it whole, if it has one.
    pub request: Option<&'a str>,
}

/// A question about a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct QuestionRecord<'a> {
    /// The call.
    pub call: CallPlace<'a>,
    /// What is asked. Asked anew after a change of the policy, it has the same id and another digest.
    pub request: &'a ApprovalRequest,
    /// The question of another call that this one shares: its own is asked only if that one ends without an answer.
    pub shares: Option<RequestId>,
}

/// An answer to a question about a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AnswerRecord<'a> {
    /// The call.
    pub call: CallPlace<'a>,
    /// The question.
    pub request: RequestId,
    /// What was asked about: an answer holds for nothing else.
    pub digest: CallDigest,
    /// The answer.
    pub answer: &'a Answer,
    /// Whether it was given to this question.
    pub by: SettledBy,
}

impl<'a> AnswerRecord<'a> {
    /// The record of an answer, with the fields in their order: for whoever answers a question that another life of the
    /// engine has recorded.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{Answer, AnswerRecord, CallDigest, CallPlace, RequestId, event::SettledBy};
    /// fn record<'a>(call: CallPlace<'a>, request: RequestId, digest: CallDigest, yes: &'a Answer) -> AnswerRecord<'a> {
    ///     AnswerRecord::new(call, request, digest, yes, SettledBy::Approver)
    /// }
    /// ```
    pub fn new(
        call: CallPlace<'a>,
        request: RequestId,
        digest: CallDigest,
        answer: &'a Answer,
        by: SettledBy,
    ) -> Self {
        Self { call, request, digest, answer, by }
    }
}

/// A call that is about to be started.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AttemptRecord<'a> {
    /// The call.
    pub call: CallPlace<'a>,
    /// The number of the attempt, from 1. The first one of a call that takes over from another is a later one.
    pub attempt: u32,
    /// Its tool: what it can do, its version, whether it may be repeated, what a call of it costs.
    pub tool: &'a ToolSpec,
    /// What it runs with.
    pub arguments: &'a Value,
    /// Whether that is the JSON that its call was recorded with, which nothing has changed since, so that a recorder need not
    /// write it again.
    pub is_as_sent: bool,
    /// Its idempotency key.
    pub key: Option<&'a str>,
    /// Where it runs, and within which limits.
    pub confinement: &'a Confinement,
    /// How it was approved, if that was needed.
    pub approval: Option<Approval>,
    /// The digest of what runs, if it was asked about, or if somebody keeps the events: a sink or a writer.
    pub digest: Option<CallDigest>,
    /// How long the attempt may take.
    pub timeout: Duration,
}

impl AttemptRecord<'_> {
    /// Whether the call changes something, or has a key: whether it must not start before this record is durable.
    pub fn must_wait(&self) -> bool {
        self.key.is_some() || !self.tool.side_effects.is_read_only()
    }

    /// Whether another life of the engine loses nothing without this record: the call only reads, has no key, and spawns no
    /// sub-agents, so it may run again whether or not it had begun. What its handler dispatches is recorded by itself.
    pub fn is_of_plain_read(&self) -> bool {
        is_plain_read(self.tool, self.key)
    }
}

/// An attempt that has ended and is not its call's end.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AttemptEnd<'a> {
    /// The call.
    pub call: CallPlace<'a>,
    /// The number of the attempt.
    pub attempt: u32,
    /// Its tool.
    pub tool: &'a ToolSpec,
    /// The call's idempotency key.
    pub key: Option<&'a str>,
    /// What it ended with.
    pub status: Result<&'a ToolOutput, &'a CallError>,
    /// Whether another attempt follows. If not, the call's caller has left, and this is the result of the other calls of
    /// its key.
    pub is_retried: bool,
}

impl AttemptEnd<'_> {
    /// Whether the call changes something, or has a key: whether the next attempt must wait until this record is durable.
    pub fn must_wait(&self) -> bool {
        self.key.is_some() || !self.tool.side_effects.is_read_only()
    }

    /// Whether the attempt is one whose [record](AttemptRecord::is_of_plain_read) nobody needs.
    pub fn is_of_plain_read(&self) -> bool {
        is_plain_read(self.tool, self.key)
    }
}

/// Whether a call of this tool, with this key, only reads, has none and spawns no sub-agents.
pub(super) fn is_plain_read(tool: &ToolSpec, key: Option<&str>) -> bool {
    key.is_none() && tool.side_effects.is_read_only() && !tool.recursive
}

/// A call that has its result.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EndRecord<'a> {
    /// The call.
    pub call: CallPlace<'a>,
    /// Its tool; `None` if the gate has refused it.
    pub tool: Option<&'a ToolSpec>,
    /// Its idempotency key, as its caller gave it.
    pub key: Option<&'a str>,
    /// The result.
    pub status: Result<&'a ToolOutput, &'a CallError>,
    /// How often its handler was started.
    pub attempts: u32,
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
    /// From the start of its run until its permits were granted and its start was durable.
    pub queued: Duration,
    /// From then until its end.
    pub ran: Duration,
}

impl EndRecord<'_> {
    /// Whether the call changes something, or has a key, or was refused, so that another life of the engine might let it
    /// through: whether nobody must be given the result before this record is durable.
    pub fn must_wait(&self) -> bool {
        self.key.is_some() || self.tool.is_none_or(|tool| !tool.side_effects.is_read_only())
    }
}

/// A turn that is taken up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ResumeRecord<'a> {
    /// Its session.
    pub session: &'a SessionId,
    /// Its agent.
    pub agent: &'a AgentPath,
    /// The turn.
    pub turn: u64,
    /// Its calls that end with this: those of which nobody knows what became of them, and those that are known to have
    /// done their work.
    pub ended: Vec<EndRecord<'a>>,
}

/// What is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancelled<'a> {
    /// All calls of the agent and of its sub-agents, now and in future.
    Session,
    /// Those in flight.
    InFlight,
    /// All calls of this turn, now and in future.
    Turn(u64),
    /// The calls of this batch, now and in future: its caller has left, or has cancelled it and not its turn.
    Batch(u64),
    /// The calls in flight that have this id, of this turn or of any.
    Calls {
        /// The turn.
        turn: Option<u64>,
        /// The id.
        id: &'a str,
    },
    /// One call, if it is in flight, or is pushed and not recorded yet.
    Call {
        /// The turn.
        turn: u64,
        /// The batch.
        batch: u64,
        /// Its place in the batch, from 0.
        index: u32,
    },
}

/// A cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CancelRecord<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The agent.
    pub agent: &'a AgentPath,
    /// What is cancelled of it.
    pub what: Cancelled<'a>,
}

/// What became of a call that was left open.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Recovered<'a> {
    /// It has done its work, with this output.
    Done(&'a ToolOutput),
    /// It has done nothing: it may run.
    NotDone,
    /// Nobody knows.
    Unknown,
}

/// What was found out about a call that was left open.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VerdictRecord<'a> {
    /// The call.
    pub call: CallPlace<'a>,
    /// What became of it.
    pub found: Recovered<'a>,
}
