//! The kinds of events.

use super::{CallDetails, ConfirmationRequest, ConfirmationResolution, Epoch, details};
use crate::{
    BreakerState, CallDigest, CallError, Dedupe, Effect, ErrorKind, LazyDigest, Reason, Sandbox, SideEffects,
    ToolClass, error::OldClass,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The fields shared by the three events that end a call without an output (OB-1b).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Failure {
    /// The tool's name; `_unknown` if no tool has the name that was called (OB-4).
    pub tool_name: Arc<str>,
    /// The code.
    pub code: ErrorKind,
    /// The code's class in the older vocabulary.
    #[serde(rename = "class")]
    pub old_class: OldClass,
    /// The message.
    pub message: String,
    /// What is known about the effect.
    pub outcome: Effect,
    /// How often the handler was started.
    pub attempts: u32,
    /// The specific cause, for codes that have several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Milliseconds from the start of the call's run until its permits were granted and, with a recorder, its start was
    /// durable.
    pub queue_ms: u64,
    /// Milliseconds from then until its end.
    pub duration_ms: u64,
    /// Whether the call shares the failure of another call.
    #[serde(default, skip_serializing_if = "Dedupe::is_fresh")]
    pub dedupe: Dedupe,
    /// Whether what ran had other arguments than the call, from the person who approved it (SM-5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
    /// What the tool tells of the call. Boxed, because most failures have none.
    #[serde(flatten, with = "details")]
    pub details: Option<Box<CallDetails>>,
}

impl Failure {
    /// The failure fields of a call with this error.
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
            edited: false,
            details: CallDetails::of_error(error),
        }
    }
}

/// How a call was approved, if the policy alone did not decide (PO-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// The approver was asked about this call.
    Asked,
    /// An earlier answer covered all calls of its pattern.
    Remembered,
}

/// The steps of a drain, in order (SC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainStep {
    /// New calls are refused.
    Refuse,
    /// Waiting calls are ended.
    ClearQueue,
    /// Running calls may finish.
    Finish,
    /// Running calls are cancelled.
    Cancel,
    /// Handlers that did not stop are abandoned.
    Abandon,
    /// The actors have stopped.
    Stopped,
}

/// What happened. The names and fields follow OB-1 and the table in the [module docs](crate::event).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event")]
#[non_exhaustive]
#[allow(missing_docs, reason = "the table in the module docs describes the fields of every kind")]
pub enum EventKind {
    /// A call arrived.
    #[serde(rename = "tool.call.received")]
    Received {
        tool_name: Arc<str>,
        bytes: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<LazyDigest>,
    },
    /// The call's arguments are invalid.
    #[serde(rename = "tool.input_invalid")]
    InputInvalid(Failure),
    /// The call may not run.
    #[serde(rename = "tool.call.denied")]
    Denied(Failure),
    /// The call ended without an output.
    #[serde(rename = "tool.failed")]
    Failed(Failure),
    /// The call ended with an output.
    #[serde(rename = "tool.completed")]
    Completed {
        tool_name: Arc<str>,
        duration_ms: u64,
        queue_ms: u64,
        bytes: usize,
        dedupe: Dedupe,
        sandbox: Sandbox,
        cancel_requested: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        edited: bool,
        #[serde(flatten, with = "details")]
        details: Option<Box<CallDetails>>,
    },
    /// A drain has suspended the call, which has not started: it goes on when its turn is resumed.
    #[serde(rename = "call.suspended")]
    Suspended { tool_name: Arc<str> },
    /// The approver is asked.
    #[serde(rename = "tool.confirmation_requested")]
    ConfirmationRequested(Box<ConfirmationRequest>),
    /// The confirmation is settled: the approver answered, or no answer will come.
    #[serde(rename = "tool.confirmation_resolved")]
    ConfirmationResolved(Box<ConfirmationResolution>),
    /// Every check has passed and the permits are held; the first attempt follows.
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
        digest: Option<LazyDigest>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        edited: bool,
    },
    /// An attempt starts.
    #[serde(rename = "dispatch.attempt")]
    Attempt,
    /// Some output of an attempt that is still running.
    #[serde(rename = "tool.output_delta")]
    OutputDelta { text: String },
    /// Another attempt will follow.
    #[serde(rename = "dispatch.retry")]
    Retry { delay_ms: u64, code: ErrorKind },
    /// A handler finished after its call had ended.
    #[serde(rename = "dispatch.late_result")]
    LateResult { ok: bool },
    /// A breaker changed its state.
    #[serde(rename = "breaker.transition")]
    BreakerTransition {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        backend: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<Sandbox>,
        from: BreakerState,
        to: BreakerState,
    },
    /// An operator released the resources held by handlers that do not stop.
    #[serde(rename = "zombies.released")]
    ZombiesReleased { tool_name: Arc<str>, count: usize },
    /// Another policy is in force.
    #[serde(rename = "policy.changed")]
    PolicyChanged { version: u64 },
    /// The width of a pool changed.
    #[serde(rename = "pool.resized")]
    PoolResized { class: ToolClass, from: usize, to: usize },
    /// A session was opened.
    #[serde(rename = "session.opened")]
    SessionOpened,
    /// A session goes on from what earlier lives of the engine have recorded under its name (JR-11): after its opening.
    #[serde(rename = "session.recovered")]
    SessionRecovered {
        /// The life of the engine that goes on.
        epoch: Epoch,
        /// How many calls that change something were started and have no result.
        interrupted: u64,
        /// How many of its turns are open.
        open: u64,
    },
    /// A session was closed.
    #[serde(rename = "session.closed")]
    SessionClosed,
    /// A turn started. `calls` is absent while the model still streams them.
    #[serde(rename = "turn.started")]
    TurnStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        calls: Option<usize>,
    },
    /// Every call of a turn has ended.
    #[serde(rename = "turn.ended")]
    TurnEnded { ok: usize, failed: usize },
    /// A turn was cancelled.
    #[serde(rename = "turn.cancelled")]
    TurnCancelled,
    /// A sub-agent was created.
    #[serde(rename = "agent.forked")]
    AgentForked { child: String },
    /// A sub-agent ended.
    #[serde(rename = "agent.joined")]
    AgentJoined { child: String },
    /// An engine was built: a new life of the log begins, in which everything is numbered and timed anew. Only writers
    /// get it, and it has the number and the position 0. `epoch` names that life.
    #[serde(rename = "engine.started")]
    EngineStarted { version: String, epoch: Epoch },
    /// The engine's drain reached this step.
    #[serde(rename = "engine.drain")]
    EngineDrain { step: DrainStep },
}

impl EventKind {
    /// The names of all kinds.
    pub const NAMES: &'static [&'static str] = &[
        "tool.call.received",
        "tool.input_invalid",
        "tool.call.denied",
        "tool.failed",
        "tool.completed",
        "call.suspended",
        "tool.confirmation_requested",
        "tool.confirmation_resolved",
        "tool.called",
        "dispatch.attempt",
        "tool.output_delta",
        "dispatch.retry",
        "dispatch.late_result",
        "breaker.transition",
        "zombies.released",
        "policy.changed",
        "pool.resized",
        "session.opened",
        "session.recovered",
        "session.closed",
        "turn.started",
        "turn.ended",
        "turn.cancelled",
        "agent.forked",
        "agent.joined",
        "engine.started",
        "engine.drain",
    ];

    /// The name on the wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Received { .. } => "tool.call.received",
            Self::InputInvalid(_) => "tool.input_invalid",
            Self::Denied(_) => "tool.call.denied",
            Self::Failed(_) => "tool.failed",
            Self::Completed { .. } => "tool.completed",
            Self::Suspended { .. } => "call.suspended",
            Self::ConfirmationRequested(_) => "tool.confirmation_requested",
            Self::ConfirmationResolved(_) => "tool.confirmation_resolved",
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
            Self::SessionRecovered { .. } => "session.recovered",
            Self::SessionClosed => "session.closed",
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnEnded { .. } => "turn.ended",
            Self::TurnCancelled => "turn.cancelled",
            Self::AgentForked { .. } => "agent.forked",
            Self::AgentJoined { .. } => "agent.joined",
            Self::EngineStarted { .. } => "engine.started",
            Self::EngineDrain { .. } => "engine.drain",
        }
    }

    /// The names that other vocabularies use for this kind, for readers of older logs (OB-1b).
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
    ///     edited: false,
    /// };
    /// assert_eq!(called.name(), "tool.called");
    /// assert_eq!(called.aliases(), ["tool.call.dispatched", "ToolCallStart"]);
    /// ```
    pub const fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::Called { .. } => &["tool.call.dispatched", "ToolCallStart"],
            Self::Completed { .. } => &["ToolCallEnd"],
            Self::InputInvalid(_) | Self::Denied(_) | Self::Failed(_) => &["ToolCallFailed"],
            _ => &[],
        }
    }

    /// Whether the event is about one call, which it then names.
    pub const fn is_of_call(&self) -> bool {
        use EventKind as E;
        match self {
            E::Received { .. } | E::ConfirmationRequested(_) | E::ConfirmationResolved(_) => true,
            E::Called { .. } | E::Attempt | E::OutputDelta { .. } | E::Retry { .. } => true,
            E::InputInvalid(_) | E::Denied(_) | E::Failed(_) | E::Completed { .. } => true,
            E::LateResult { .. } | E::Suspended { .. } => true,
            E::BreakerTransition { .. } | E::ZombiesReleased { .. } | E::PolicyChanged { .. } => false,
            E::PoolResized { .. } | E::SessionOpened | E::SessionRecovered { .. } => false,
            E::SessionClosed | E::TurnStarted { .. } => false,
            E::TurnEnded { .. } | E::TurnCancelled | E::AgentForked { .. } | E::AgentJoined { .. } => false,
            E::EngineStarted { .. } | E::EngineDrain { .. } => false,
        }
    }

    /// The name of the tool, if this kind of event carries one.
    pub const fn tool_name(&self) -> Option<&Arc<str>> {
        match self {
            Self::Received { tool_name, .. }
            | Self::Completed { tool_name, .. }
            | Self::Suspended { tool_name }
            | Self::Called { tool_name, .. }
            | Self::ZombiesReleased { tool_name, .. } => Some(tool_name),
            Self::InputInvalid(failure) | Self::Denied(failure) | Self::Failed(failure) => {
                Some(&failure.tool_name)
            }
            Self::ConfirmationRequested(request) => Some(&request.tool_name),
            Self::BreakerTransition { tool_name, .. } => tool_name.as_ref(),
            _ => None,
        }
    }

    /// The name of the tool that the event is about, taken out of an event that is no longer needed; `None` if it is about
    /// none.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::EventKind;
    /// let suspended = EventKind::Suspended { tool_name: "save".into() };
    /// assert_eq!(suspended.into_tool_name().as_deref(), Some("save"));
    /// assert_eq!(EventKind::Attempt.into_tool_name(), None);
    /// ```
    pub fn into_tool_name(self) -> Option<Arc<str>> {
        match self {
            Self::Received { tool_name, .. }
            | Self::Completed { tool_name, .. }
            | Self::Suspended { tool_name }
            | Self::Called { tool_name, .. }
            | Self::ZombiesReleased { tool_name, .. } => Some(tool_name),
            Self::InputInvalid(failure) | Self::Denied(failure) | Self::Failed(failure) => {
                Some(failure.tool_name)
            }
            Self::ConfirmationRequested(request) => Some(request.tool_name),
            Self::BreakerTransition { tool_name, .. } => tool_name,
            _ => None,
        }
    }

    /// The digest of the call, if the event has one: that of its arrival, of its confirmation, or of what runs. Makes it
    /// if nobody has asked for it before.
    pub fn digest(&self) -> Option<CallDigest> {
        match self {
            Self::Received { digest, .. } | Self::Called { digest, .. } => {
                digest.as_ref().map(LazyDigest::get).copied()
            }
            Self::ConfirmationRequested(request) => Some(request.digest),
            Self::ConfirmationResolved(resolution) => resolution.digest,
            _ => None,
        }
    }

    /// Whether the event ends a call without an output.
    pub const fn is_failure(&self) -> bool {
        matches!(self, Self::InputInvalid(_) | Self::Denied(_) | Self::Failed(_))
    }

    /// Whether the event ends a call, or ends it for this life of the engine, as a suspension does.
    pub const fn is_terminal(&self) -> bool {
        self.is_failure() || matches!(self, Self::Completed { .. } | Self::Suspended { .. })
    }

    /// What the tool tells of the call that this event ends, if it tells anything.
    pub fn details_mut(&mut self) -> Option<&mut CallDetails> {
        match self {
            Self::InputInvalid(failure) | Self::Denied(failure) | Self::Failed(failure) => {
                &mut failure.details
            }
            Self::Completed { details, .. } => details,
            _ => return None,
        }
        .as_deref_mut()
    }

    /// The failure fields of an event that ends a call without an output.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::InputInvalid(failure) | Self::Denied(failure) | Self::Failed(failure) => Some(failure),
            _ => None,
        }
    }
}
