//! A batch that an earlier life of the engine has left open: what becomes of each of its calls (JR-5, JR-8).
//!
//! ```text
//!   it has ended ──────────────────► its result, as it was recorded
//!   nobody knows ──────────────────► interrupted; what comes in later runs is not started
//!   it was cancelled, not started ─► cancelled
//!   otherwise ─────────────────────► through the gate, and on from what was done for it
//! ```

use crate::{
    call::{Before, Slot},
    record::Foundation,
};
use parking_lot::Mutex;
use toolyard_core::Outcome;

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

/// Takes back what the gate let through in the runs behind the call at `unknown`: the places of those calls.
pub(super) fn hold_back(slots: &mut [Slot], end_of_run: usize) -> Vec<usize> {
    let behind = slots.iter_mut().enumerate().skip(end_of_run);
    behind.filter_map(|(at, slot)| slot.work.take().map(|_| at)).collect()
}
