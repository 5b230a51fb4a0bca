//! One run of a batch, counted down as its calls end and become quiescent.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

/// A place in a batch as a `u32`, which is enough for the largest batch allowed.
pub(crate) fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a batch is far smaller than 2^32")
}

/// A step by which a call is counted down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It has its result, but its handler or something under it still runs.
    Ended,
    /// It has become quiescent after its end.
    Quiescent,
    /// Both at once, the usual case.
    EndedAndQuiescent,
}

/// What a step has completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    /// Every call of the run has its result, by this step.
    pub(crate) ended: bool,
    /// Every call of the run is quiescent now.
    pub(crate) quiescent: bool,
}

/// One call without a result, in [`Run::left`].
const OPEN: u64 = 1 << 32;
/// One call that is not quiescent, in [`Run::left`].
const ACTIVE: u64 = 1;

/// A run of the batch. Its counts are sequentially consistent, because wake-ups are sent only to a driver or a drain
/// that waits (see `DriverWaker` and `BatchEnds`).
pub(crate) struct Run {
    calls: Range<usize>,
    /// Two counts in one word, so that a call which ends and becomes quiescent at once is counted down in one step.
    /// Upper half: calls without a result. Lower half: calls that are not quiescent, because they have no result, or
    /// their handler or calls under them still run (V2).
    left: AtomicU64,
    /// How many of the calls that are not quiescent have only listed zombies left. Almost always zero.
    listed: AtomicU32,
}

impl Run {
    pub(crate) fn new(calls: Range<usize>) -> Self {
        let count = u64::from(index(calls.len()));
        Self { left: AtomicU64::new(count * (OPEN + ACTIVE)), calls, listed: AtomicU32::new(0) }
    }

    pub(crate) fn calls(&self) -> Range<usize> {
        self.calls.clone()
    }

    /// Whether every call has its result.
    pub(crate) fn is_ended(&self) -> bool {
        self.left.load(Ordering::SeqCst) < OPEN
    }

    /// Whether every call is quiescent.
    pub(crate) fn is_quiescent(&self) -> bool {
        self.left.load(Ordering::SeqCst) == 0
    }

    /// Whether every call is quiescent or a listed zombie.
    pub(crate) fn is_settled(&self) -> bool {
        // In this order: a call that the second load counts as listed was not quiescent at the first, so equal counts
        // mean the same calls. A call that becomes quiescent in between triggers its own check.
        let left = self.left.load(Ordering::SeqCst);
        left <= u64::from(self.listed.load(Ordering::SeqCst))
    }

    pub(crate) fn count_down(&self, step: Step) -> Counted {
        let by = match step {
            Step::Ended => OPEN,
            Step::Quiescent => ACTIVE,
            Step::EndedAndQuiescent => OPEN + ACTIVE,
        };
        let left = self.left.fetch_sub(by, Ordering::SeqCst) - by;
        Counted { ended: by >= OPEN && left < OPEN, quiescent: left == 0 }
    }

    /// Counts a call that has only listed zombies left.
    pub(crate) fn list(&self) {
        self.listed.fetch_add(1, Ordering::SeqCst);
    }

    /// A call that was listed is now quiescent. Unlisted first, so that it is never counted as listed alone.
    pub(crate) fn count_down_listed(&self) -> Counted {
        self.listed.fetch_sub(1, Ordering::SeqCst);
        self.count_down(Step::Quiescent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{hint::spin_loop, sync::atomic::AtomicUsize, thread};

    /// A run of two calls that have their results: one is a listed zombie, the handler of the other still runs.
    fn half_listed() -> Run {
        let run = Run::new(0..2);
        for _ in run.calls() {
            run.count_down(Step::Ended);
        }
        run.list();
        run
    }

    /// V2: a run is not settled while a handler runs that is not listed, even if another call becomes quiescent at
    /// that moment.
    #[test]
    fn a_zombie_that_becomes_quiescent_does_not_hide_a_running_handler() {
        let runs: Vec<_> = (0..1000).map(|_| half_listed()).collect();
        let begun = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for (n, run) in runs.iter().enumerate() {
                    while begun.load(Ordering::Acquire) <= n {
                        spin_loop();
                    }
                    run.count_down_listed();
                }
            });
            let mut seen_settled = false;
            for (n, run) in runs.iter().enumerate() {
                begun.store(n + 1, Ordering::Release);
                while run.left.load(Ordering::Acquire) > 1 {
                    seen_settled |= run.is_settled();
                }
                seen_settled |= run.is_settled();
            }
            assert!(!seen_settled);
        });
    }
}
