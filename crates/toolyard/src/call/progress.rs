//! What a call carries from a failed attempt to the next one.

use crate::{
    call::ending::{Ending, Recorded},
    record::Foundation,
    tool::Paid,
};
use std::time::Duration;
use tokio::time::Instant;
use toolyard_core::{CallError, Dedupe, Sandbox};

/// The failed attempts of a call that is to be retried.
pub(crate) struct Progress {
    /// How often the handler was started.
    pub(crate) attempts: u32,
    /// The error of the last attempt.
    pub(crate) error: Box<CallError>,
    /// When the call was ready, and when it got its first permits.
    pub(crate) ready_at: Instant,
    pub(crate) granted_at: Instant,
    /// The earliest instant of the next attempt.
    pub(crate) not_before: Instant,
    /// What the next attempt took from the tool's retry bucket (RT-5).
    pub(crate) paid: Paid,
    /// The span that all its attempts share.
    pub(crate) span: tracing::Span,
    /// Whether another call made these attempts, in a flight that this call has taken over.
    pub(crate) inherited: bool,
    /// The record of the last one's end, for which the next one waits.
    pub(crate) recorded: Foundation,
}

/// A call's request for its next attempt.
pub(crate) struct Bid {
    /// When it began to wait for this attempt.
    pub(crate) ready_at: Instant,
    /// Its failed attempts, if it has been tried before.
    pub(crate) progress: Option<Box<Progress>>,
}

impl Bid {
    /// The bid for a first attempt.
    pub(crate) fn first(ready_at: Instant) -> Self {
        Self { ready_at, progress: None }
    }

    /// When the call was ready for its first attempt. Its deadline counts from there (V3).
    pub(crate) fn first_ready_at(&self) -> Instant {
        self.progress.as_ref().map_or(self.ready_at, |progress| progress.ready_at)
    }
}

impl Progress {
    pub(crate) fn queued(&self) -> Duration {
        self.granted_at.saturating_duration_since(self.ready_at)
    }

    /// The end of a call that does not get its next attempt.
    pub(crate) fn ending(&self, error: CallError, sandbox: Sandbox, now: Instant) -> Ending {
        Ending {
            queued: self.queued().into(),
            ran: now.saturating_duration_since(self.granted_at).into(),
            attempts: self.attempts,
            sandbox,
            cancel_requested: error.kind == toolyard_core::ErrorKind::Cancelled,
            status: Err(Box::new(error.after_error(self.error.clone()))),
            dedupe: Dedupe::Fresh,
            recorded: Recorded::NotYet,
        }
    }
}
