//! A batch that an earlier life of the engine has left open: what becomes of each of its calls (JR-5, JR-8).
//!
//! ```text
//!   it has ended ──────────────────► its result, as it was recorded
//!   nobody knows ──────────────────► interrupted; what comes in later runs is not started
//!   it was cancelled, not started ─► cancelled
//!   otherwise ─────────────────────► through the gate, and on from what was done for it
//! ```

use super::early::EarlyResult;
use crate::{
    call::{Before, Run, Slot, Stop, index, predecessor_unknown_error},
    record::Foundation,
};
use parking_lot::Mutex;
use toolyard_core::{ErrorKind, Outcome, Routing};

/// A batch that is taken up.
pub(crate) struct TakenUp {
    /// Its number in its session.
    pub(crate) number: u64,
    /// The record that it was taken up, on which its calls build.
    pub(crate) foundation: Foundation,
    /// Whether calls run behind one that was interrupted.
    pub(crate) goes_on_behind: bool,
    fates: Mutex<Vec<Fate>>,
}

/// What becomes of a call.
pub(crate) enum Fate {
    /// It has this result. `is_unknown`: it was running, and may have changed something that nobody knows of.
    Ended { outcome: Box<Outcome>, is_unknown: bool },
    /// It was cancelled, and is not started.
    Cancelled,
    /// It goes on.
    Open(Before),
}

impl TakenUp {
    pub(crate) fn new(number: u64, foundation: Foundation, goes_on_behind: bool, fates: Vec<Fate>) -> Self {
        Self { number, foundation, goes_on_behind, fates: Mutex::new(fates) }
    }

    /// What becomes of each of its calls. Taken once.
    pub(super) fn take_fates(&self) -> Vec<Fate> {
        std::mem::take(&mut self.fates.lock())
    }
}

/// What earlier lives of the engine have done for the calls of a batch.
pub(super) struct BeforeAll {
    fates: std::vec::IntoIter<Fate>,
    /// For each call so far.
    pub(super) open: Vec<Before>,
}

impl BeforeAll {
    #[cold]
    pub(super) fn of(taken_up: &TakenUp, calls: usize) -> Self {
        Self { fates: taken_up.take_fates().into_iter(), open: Vec::with_capacity(calls) }
    }

    /// The result of the next call, which is at this place; `None` if it goes on.
    #[cold]
    pub(super) fn result_of(&mut self, at: usize) -> Option<EarlyResult> {
        debug_assert_eq!(at, self.open.len(), "calls are taken in their order");
        let (before, result) = match self.fates.next() {
            None => (Before::default(), None),
            Some(Fate::Open(before)) => (before, None),
            Some(Fate::Ended { outcome, is_unknown }) => {
                (Before::default(), Some(EarlyResult::Before { outcome, is_unknown }))
            }
            Some(Fate::Cancelled) => (Before::default(), Some(EarlyResult::Refused(Stop::Cancelled.error()))),
        };
        self.open.push(before);
        result
    }
}

/// Refuses what would have waited for a call of which nobody knows what became of it (JR-8).
#[cold]
pub(super) fn hold_back(slots: &mut [Slot], runs: &[Run], early: &mut Vec<(u32, EarlyResult)>) {
    let is_unknown = |result: &EarlyResult| match result {
        EarlyResult::Before { is_unknown, .. } => *is_unknown,
        // The turn was taken up, and its response comes again, whole.
        EarlyResult::Replayed(outcome) => is_interrupted(outcome),
        _ => false,
    };
    let Some(unknown) = early.iter().find(|(_, result)| is_unknown(result)).map(|(at, _)| *at as usize)
    else {
        return;
    };
    let Some(run) = runs.iter().map(Run::calls).find(|run| run.contains(&unknown)) else { return };
    for (at, slot) in slots.iter_mut().enumerate().skip(run.end) {
        if slot.work.take().is_some() {
            early.push((index(at), EarlyResult::Refused(predecessor_unknown_error())));
        }
    }
    early.sort_by_key(|(at, _)| *at);
}

/// Whether nobody knows what the call has done, which may be a change.
pub(crate) fn is_interrupted(outcome: &Outcome) -> bool {
    let is_interrupted = outcome.error().is_some_and(|error| error.kind == ErrorKind::Interrupted);
    is_interrupted && matches!(outcome.routing, Routing::Serial | Routing::Concurrent)
}
