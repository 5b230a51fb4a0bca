//! What a call has behind it that is to be tried again.

use super::ledger::Ending;
use crate::retry::Paid;
use std::time::Duration;
use tokio::time::Instant;
use toolyard_core::{CallError, Dedupe, Sandbox};

/// The attempts of a call that have failed.
pub(crate) struct Progress {
    /// How often the handler was started.
    pub(crate) attempts: u32,
    /// What the last one failed with.
    pub(crate) error: Box<CallError>,
    /// When the call was ready, and had its first permits.
    pub(crate) ready_at: Instant,
    pub(crate) granted_at: Instant,
    /// When the next attempt may be made.
    pub(crate) not_before: Instant,
    /// What the next attempt took from the tool's retry bucket (RT-5).
    pub(crate) paid: Paid,
    /// The span of all its attempts.
    pub(crate) span: tracing::Span,
    /// Whether another call had these attempts, whose flight this one has taken over.
    pub(crate) inherited: bool,
}

/// What a call asks for its next attempt with.
pub(crate) struct Bid {
    /// When it came to ask.
    pub(crate) ready_at: Instant,
    /// What it has behind it, if it has been tried before.
    pub(crate) progress: Option<Box<Progress>>,
}

impl Bid {
    /// That of a first attempt.
    pub(super) fn first(ready_at: Instant) -> Self {
        Self { ready_at, progress: None }
    }

    /// When the call was ready for its first attempt: its deadline counts from there (V3).
    pub(crate) fn began(&self) -> Instant {
        self.progress.as_ref().map_or(self.ready_at, |progress| progress.ready_at)
    }
}

impl Progress {
    pub(crate) fn queued(&self) -> Duration {
        self.granted_at.saturating_duration_since(self.ready_at)
    }

    /// The end of the call before its next attempt.
    pub(super) fn ending(&self, error: CallError, sandbox: Sandbox, now: Instant) -> Ending {
        Ending {
            queued: self.queued().into(),
            ran: now.saturating_duration_since(self.granted_at).into(),
            attempts: self.attempts,
            sandbox,
            cancel_requested: error.kind == toolyard_core::ErrorKind::Cancelled,
            status: Err(Box::new(error.after_error(self.error.clone()))),
            dedupe: Dedupe::Fresh,
        }
    }
}
