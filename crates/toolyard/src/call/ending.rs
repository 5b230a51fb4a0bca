//! How a call ended.

use crate::keys::RetainedResult;
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolyard_core::{
    Call, CallError, Dedupe, Elapsed, Outcome, Routing, Sandbox, ToolOutput, edited, set_edited,
};

/// What is known of a call's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// It is still to be given, if there is a recorder.
    NotYet,
    /// It was given.
    Given,
    /// It was given, and is not durable.
    Failed,
}

/// How a call ended: its [`Outcome`] without the parts that its [`Call`] has already.
#[derive(Clone)]
pub(crate) struct Ending {
    pub(crate) status: Result<ToolOutput, Box<CallError>>,
    pub(crate) queued: Elapsed,
    pub(crate) ran: Elapsed,
    pub(crate) attempts: u32,
    pub(crate) sandbox: Sandbox,
    pub(crate) cancel_requested: bool,
    pub(crate) dedupe: Dedupe,
    pub(crate) recorded: Recorded,
}

impl Ending {
    /// The outcome of this call as its caller sees it.
    #[inline]
    pub(super) fn outcome(self, call: Call, routing: Routing, run: u32) -> Outcome {
        let mut outcome = Outcome::of_call(call, routing, self.status);
        outcome.run = run;
        outcome.attempts = self.attempts;
        outcome.set_times(self.queued, self.ran);
        outcome.sandbox = self.sandbox;
        outcome.cancel_requested = self.cancel_requested;
        outcome.dedupe = self.dedupe;
        outcome.recorded = self.recorded != Recorded::Failed;
        outcome
    }

    /// The end that an outcome was made of.
    pub(crate) fn of_outcome(outcome: Outcome) -> Self {
        Self {
            queued: outcome.queued().into(),
            ran: outcome.ran().into(),
            attempts: outcome.attempts,
            sandbox: outcome.sandbox,
            cancel_requested: outcome.cancel_requested,
            dedupe: outcome.dedupe,
            recorded: if outcome.recorded { Recorded::Given } else { Recorded::Failed },
            status: outcome.status,
        }
    }

    /// Whether a handler has run for it, its own or that of another call.
    pub(crate) fn has_run(&self) -> bool {
        self.attempts > 0 || self.dedupe != Dedupe::Fresh
    }

    /// The arguments that ran, without secrets, if the person who approved the call changed them.
    pub(crate) fn edited(&self) -> Option<&Arc<Value>> {
        edited(&self.status)
    }

    /// Notes that these arguments ran, or none but the call's own.
    #[inline]
    pub(crate) fn with_edit(mut self, edited: Option<Arc<Value>>) -> Self {
        set_edited(&mut self.status, edited);
        self
    }

    /// Whether the call was suspended (SM-10).
    pub(crate) fn is_suspended(&self) -> bool {
        !self.has_run() && matches!(&self.status, Err(error) if error.suspended.is_some())
    }

    /// Whether it is told to nobody before its record is durable, which has not been given yet (SM-4): the call itself
    /// has run.
    pub(super) fn is_told_when_durable(&self) -> bool {
        self.recorded == Recorded::NotYet && self.attempts > 0 && self.dedupe == Dedupe::Fresh
    }

    /// How much memory its result takes, in bytes, more or less.
    pub(crate) fn footprint(&self) -> usize {
        match &self.status {
            Ok(output) => output.footprint(),
            Err(error) => error.footprint(),
        }
    }

    /// The end of a call that this turn has answered before.
    pub(crate) fn replayed(outcome: Outcome) -> Self {
        Self {
            status: outcome.status,
            queued: Elapsed::default(),
            ran: Elapsed::default(),
            attempts: outcome.attempts,
            sandbox: outcome.sandbox,
            cancel_requested: outcome.cancel_requested,
            dedupe: Dedupe::Replayed,
            recorded: Recorded::NotYet,
        }
    }

    /// The end of a call for which a result is kept under its key.
    pub(crate) fn retained(retained: &RetainedResult) -> Self {
        let shared = Self::shared(retained.status(), retained.attempts, Duration::ZERO);
        Self { sandbox: retained.sandbox, dedupe: Dedupe::Replayed, ..shared }
    }

    /// The end of a call that shares the result of another call.
    pub(crate) fn shared(
        status: Result<ToolOutput, Box<CallError>>,
        attempts: u32,
        waited: Duration,
    ) -> Self {
        Self {
            status,
            queued: waited.into(),
            ran: Elapsed::default(),
            attempts,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            dedupe: Dedupe::Joined,
            recorded: Recorded::NotYet,
        }
    }

    /// The end of a call whose task was dropped.
    pub(crate) fn vanished(error: CallError, queued: Duration) -> Self {
        Self { queued: queued.into(), attempts: error.attempts, ..Self::unstarted(error) }
    }

    /// The end of a call that never started.
    pub(crate) fn unstarted(error: CallError) -> Self {
        Self {
            status: Err(Box::new(error)),
            queued: Elapsed::default(),
            ran: Elapsed::default(),
            attempts: 0,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            dedupe: Dedupe::Fresh,
            recorded: Recorded::NotYet,
        }
    }
}
