//! The kinds of events.

use crate::{
    BreakerState, CallDigest, CallError, Dedupe, Effect, ErrorKind, Reason, RequestId, Sandbox, SideEffects,
    ToolClass, error::OldClass,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The fields that the three failing ends of a call share (OB-1b).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The tool's name; `_unknown` for a name that no tool has (OB-4).
    pub tool_name: Arc<str>,
    /// The code.
    pub code: ErrorKind,
    /// The code's older class.
    #[serde(rename = "class")]
    pub old_class: OldClass,
    /// The message.
    pub message: String,
    /// What is known of the effect.
    pub outcome: Effect,
    /// How often the handler was started.
    pub attempts: u32,
    /// A closer word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Milliseconds from the begin of its run to its permits.
    pub queue_ms: u64,
    /// Milliseconds from its permits to its end.
    pub duration_ms: u64,
    /// Whether it shares the failure of another call.
    #[serde(default, skip_serializing_if = "Dedupe::is_fresh")]
    pub dedupe: Dedupe,
}

impl Failure {
    /// The fields of this error.
    pub fn new(tool_name: Arc<str>, error: &CallError, queue_ms: u64, duration_ms: u64) -> Self {
        Self {
            tool_name,
            code: error.kind,
            old_class: error.kind.into(),
            message: error.message.clone(),
            outcome: error.effect,
            attempts: error.attempts,
            reason: error.reason,
            queue_ms,
            duration_ms,
            dedupe: Dedupe::Fresh,
        }
    }
}

/// By what a question was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// Whoever was asked answered.
    Approver,
    /// An answer to another question was for all calls of the pattern, this one too.
    Pattern,
}

/// Why a call may run, where that is not for the policy alone to say (PO-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It was asked about.
    Asked,
    /// An earlier answer was for all calls of its pattern.
    Remembered,
}

/// The steps of a drain, in order (SC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainStep {
    /// New calls are refused.
    Refuse,
    /// Waiting calls have ended.
    ClearQueue,
    /// Running calls may finish.
    Finish,
    /// Running calls are told to stop.
    Cancel,
    /// What did not stop is given up.
    Abandon,
    /// The actors have stopped.
    Stopped,
}

/// What happened. Names and fields are those of OB-1 and the table in the [module docs](crate::event).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields of every kind are told in the table of the module docs")]
pub enum EventKind {
    /// A call came in.
    #[serde(rename = "tool.call.received")]
    Received {
        tool_name: Arc<str>,
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<CallDigest>,
    },
    /// Its arguments are refused.
    #[serde(rename = "tool.input_invalid")]
    InputInvalid(Failure),
    /// It may not run.
    #[serde(rename = "tool.call.denied")]
    Denied(Failure),
    /// It has no output.
    #[serde(rename = "tool.failed")]
    Failed(Failure),
    /// It has an output.
    #[serde(rename = "tool.completed")]
    Completed {
        tool_name: Arc<str>,
        duration_ms: u64,
        queue_ms: u64,
        bytes: usize,
        dedupe: Dedupe,
        sandbox: Sandbox,
        cancel_requested: bool,
    },
    /// Somebody is asked.
    #[serde(rename = "tool.confirmation_requested")]
    ConfirmationRequested {
        tool_name: Arc<str>,
        side_effects: SideEffects,
        expires_ms: u64,
        request: RequestId,
        digest: CallDigest,
        arguments: String,
    },
    /// Somebody answered, or nobody will.
    #[serde(rename = "tool.confirmation_resolved")]
    ConfirmationResolved {
        approved: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ErrorKind>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<SettledBy>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<CallDigest>,
    },
    /// Every check has passed and the permits are held: the first attempt comes next.
    #[serde(rename = "tool.called")]
    Called {
        tool_name: Arc<str>,
        side_effects: SideEffects,
        class: ToolClass,
        queue_ms: u64,
        policy_version: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<Approval>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<CallDigest>,
    },
    /// An attempt starts.
    #[serde(rename = "dispatch.attempt")]
    Attempt,
    /// Some output of an attempt that still runs.
    #[serde(rename = "tool.output_delta")]
    OutputDelta { text: String },
    /// Another attempt will follow.
    #[serde(rename = "dispatch.retry")]
    Retry { delay_ms: u64, code: ErrorKind },
    /// A handler came to its end after its call had.
    #[serde(rename = "dispatch.late_result")]
    LateResult { ok: bool },
    /// A breaker moved.
    #[serde(rename = "breaker.transition")]
    BreakerTransition {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<Arc<str>>,
        from: BreakerState,
        to: BreakerState,
    },
    /// An operator gave up what was held for handlers that do not stop.
    #[serde(rename = "zombies.released")]
    ZombiesReleased { tool_name: Arc<str>, count: usize },
    /// Another policy is in force.
    #[serde(rename = "policy.changed")]
    PolicyChanged { version: u64 },
    /// A pool has another width.
    #[serde(rename = "pool.resized")]
    PoolResized { class: ToolClass, from: usize, to: usize },
    /// A session began.
    #[serde(rename = "session.opened")]
    SessionOpened,
    /// A session ended.
    #[serde(rename = "session.closed")]
    SessionClosed,
    /// A turn began; `calls` is missing where the model still streams them.
    #[serde(rename = "turn.started")]
    TurnStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        calls: Option<usize>,
    },
    /// Every call of a turn has ended.
    #[serde(rename = "turn.ended")]
    TurnEnded { ok: usize, failed: usize },
    /// A turn is to stop.
    #[serde(rename = "turn.cancelled")]
    TurnCancelled,
    /// A sub-agent began.
    #[serde(rename = "agent.forked")]
    AgentForked { child: String },
    /// A sub-agent ended.
    #[serde(rename = "agent.joined")]
    AgentJoined { child: String },
    /// The engine drains and has come to this step.
    #[serde(rename = "engine.drain")]
    EngineDrain { step: DrainStep },
}

impl EventKind {
    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Received { .. } => "tool.call.received",
            Self::InputInvalid(_) => "tool.input_invalid",
            Self::Denied(_) => "tool.call.denied",
            Self::Failed(_) => "tool.failed",
            Self::Completed { .. } => "tool.completed",
            Self::ConfirmationRequested { .. } => "tool.confirmation_requested",
            Self::ConfirmationResolved { .. } => "tool.confirmation_resolved",
            Self::Called { .. } => "tool.called",
            Self::Attempt => "dispatch.attempt",
            Self::OutputDelta { .. } => "tool.output_delta",
            Self::Retry { .. } => "dispatch.retry",
            Self::LateResult { .. } => "dispatch.late_result",
            Self::BreakerTransition { .. } => "breaker.transition",
            Self::ZombiesReleased { .. } => "zombies.released",
            Self::PolicyChanged { .. } => "policy.changed",
            Self::PoolResized { .. } => "pool.resized",
            Self::SessionOpened => "session.opened",
            Self::SessionClosed => "session.closed",
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnEnded { .. } => "turn.ended",
            Self::TurnCancelled => "turn.cancelled",
            Self::AgentForked { .. } => "agent.forked",
            Self::AgentJoined { .. } => "agent.joined",
            Self::EngineDrain { .. } => "engine.drain",
        }
    }

    /// The names other vocabularies have for it, for readers of older logs (OB-1b).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{EventKind, SideEffects, ToolClass};
    /// let called = EventKind::Called {
    ///     tool_name: "read_file".into(),
    ///     side_effects: SideEffects::Read,
    ///     class: ToolClass::Read,
    ///     queue_ms: 0,
    ///     policy_version: 1,
    ///     approval: None,
    ///     digest: None,
    /// };
    /// assert_eq!(called.name(), "tool.called");
    /// assert_eq!(called.aliases(), ["tool.call.dispatched", "ToolCallStart"]);
    /// ```
    pub const fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::Called { .. } => &["tool.call.dispatched", "ToolCallStart"],
            Self::Completed { .. } => &["ToolCallEnd"],
            Self::Failed(_) => &["ToolCallFailed"],
            _ => &[],
        }
    }

    /// Whether a call ended without an output.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::InputInvalid(_) | Self::Denied(_) | Self::Failed(_))
    }

    /// Whether a call ended.
    pub const fn is_terminal(&self) -> bool {
        self.is_failure() || matches!(self, Self::Completed { .. })
    }

    /// The fields of a failing end.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::InputInvalid(failure) | Self::Denied(failure) | Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}
