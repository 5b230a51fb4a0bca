//! Ending a batch before its time.

use super::admit::behind_a_zombie;
use super::state::{BatchState, index};
use toolyard_core::{CallError, ErrorKind, EventKind, Reason};

/// Why a batch ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its caller, turn or session was cancelled.
    Cancelled,
    /// The engine drains.
    ShuttingDown,
    /// A pool was given up, and the engine with it (RA-5).
    Failed,
    /// A handler of an earlier run was given up and does not stop (CL-3).
    Zombie,
    /// A serial call failed and the rest is to be skipped (CL-4).
    Predecessor,
}

impl Stop {
    /// What the calls that have not started are answered.
    pub(crate) fn error(self) -> CallError {
        match self {
            Self::Cancelled => {
                CallError::new(ErrorKind::Cancelled, "the call was cancelled before it started")
            }
            Self::ShuttingDown => CallError::new(ErrorKind::ShuttingDown, "the engine is shutting down"),
            Self::Failed => {
                CallError::new(ErrorKind::Internal, "the engine has failed and runs no more calls")
            }
            Self::Zombie => behind_a_zombie(),
            Self::Predecessor => CallError::new(
                ErrorKind::Cancelled,
                "an earlier call of this batch failed, so this one was skipped",
            )
            .with_reason(Reason::Predecessor),
        }
    }

    /// Whether calls that run are to stop too.
    const fn reaches_running(self) -> bool {
        matches!(self, Self::Cancelled | Self::Failed)
    }
}

impl BatchState {
    /// Ends every call that has not started, at once, and tells those that run to stop where the reason
    /// reaches them (SC-4). A second stop for another reason finds nothing left to end, but may reach further.
    pub(crate) fn stop(&self, why: Stop) {
        let first = self.stopped.set(why).is_ok();
        if first && why == Stop::Cancelled && self.is_open() {
            self.emit_turn(|| EventKind::TurnCancelled);
        }
        self.withdraw_questions();
        for index in 0..index(self.slots.len()) {
            self.end_unstarted(index, || why.error());
        }
        if why.reaches_running() {
            self.cancel();
        }
    }
}
