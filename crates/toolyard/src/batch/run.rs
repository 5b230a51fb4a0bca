//! One run of a batch, counted down as its calls end and come to rest.

use super::state::index;
use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

/// What a call is counted down by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// It has its result, and its handler or something under it goes on.
    Ended,
    /// It has come to rest after its end.
    Rested,
    /// Both at once, as nearly always.
    EndedAndRested,
}

/// What a step was the last of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    /// Every call of the run has its result now, and had not before.
    pub(super) ended: bool,
    /// Every call of the run is quiescent now.
    pub(super) rests: bool,
}

/// One call without a result, in [`Run::left`].
const OPEN: u64 = 1 << 32;
/// One call that is not quiescent, in [`Run::left`].
const ACTIVE: u64 = 1;

/// A run of the batch.
pub(super) struct Run {
    calls: Range<usize>,
    /// Two counts in one, so that a call which ends and rests at once is counted down in one step: in the upper
    /// half calls without a result, in the lower half calls that are not quiescent: without a result, or with a
    /// handler or calls of their own that go on (V2).
    left: AtomicU64,
    /// Of those that are not quiescent, how many have nothing left but listed zombies. Hardly ever any.
    listed: AtomicU32,
}

impl Run {
    pub(super) fn new(calls: Range<usize>) -> Self {
        let count = u64::from(index(calls.len()));
        Self { left: AtomicU64::new(count * (OPEN + ACTIVE)), calls, listed: AtomicU32::new(0) }
    }

    pub(super) fn calls(&self) -> Range<usize> {
        self.calls.clone()
    }

    /// Whether every call has its result.
    pub(super) fn is_ended(&self) -> bool {
        self.left.load(Ordering::Acquire) < OPEN
    }

    /// Whether every call is quiescent.
    pub(super) fn is_quiescent(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// Whether every call is quiescent or a listed zombie.
    pub(super) fn is_settled(&self) -> bool {
        let listed = u64::from(self.listed.load(Ordering::Acquire));
        // One that comes to rest in between is in neither count, or in the second alone.
        self.left.load(Ordering::Acquire) <= listed
    }

    pub(super) fn count_down(&self, step: Step) -> Counted {
        let by = match step {
            Step::Ended => OPEN,
            Step::Rested => ACTIVE,
            Step::EndedAndRested => OPEN + ACTIVE,
        };
        let left = self.left.fetch_sub(by, Ordering::AcqRel) - by;
        Counted { ended: by >= OPEN && left < OPEN, rests: left == 0 }
    }

    /// All that is left of one call are listed zombies.
    pub(super) fn list(&self) {
        self.listed.fetch_add(1, Ordering::AcqRel);
    }

    /// A call that was listed is quiescent, and has been counted down.
    pub(super) fn unlist(&self) {
        self.listed.fetch_sub(1, Ordering::AcqRel);
    }
}
