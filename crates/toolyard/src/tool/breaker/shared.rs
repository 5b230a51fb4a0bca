//! A breaker that all calls of a tool share (CB-9), at almost no cost while it is closed.
//!
//! ```text
//!   admit    one load of the gate: does every call pass, and in which generation?
//!   success  one more in the tally, a word that holds a slice and its number of successes
//!   else     the lock: the tally is folded into the window, the machine changes, the gate is updated
//! ```

use super::{
    Admission, Breaker, Counts, Generation, OpenFor, Slot, Transition,
    tally::Tally,
    window::{Slice, Slicing},
};
use parking_lot::Mutex;
use std::{
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::{BreakerPolicy, BreakerState, error::BreakerVerdict};

/// A breaker that all calls of a tool, or of a back-end, share.
#[derive(Debug)]
pub(crate) struct SharedBreaker {
    /// The machine's [`Breaker::passing`] as of its last change.
    gate: AtomicU64,
    /// Successes that the machine has not counted yet. Taken only under the machine's lock.
    tally: Tally,
    /// Whether attempts are counted; if not, only an operator opens it and there are no probes.
    counts: bool,
    slicing: Slicing,
    epoch: Instant,
    machine: Mutex<Breaker>,
}

impl SharedBreaker {
    /// Makes a closed breaker. No attempt may be reported with a time before `epoch`.
    pub(crate) fn new(policy: BreakerPolicy, epoch: Instant) -> Self {
        let machine = Breaker::new(policy);
        Self {
            gate: AtomicU64::new(gate(&machine)),
            tally: Tally::default(),
            counts: policy.is_enabled(),
            slicing: Slicing::new(policy.window()),
            epoch,
            machine: Mutex::new(machine),
        }
    }

    /// Whether every call passes, so that nothing more has to be checked.
    #[inline]
    pub(crate) fn passes_all(&self) -> bool {
        self.passing().is_some()
    }

    /// Admits an attempt if every call passes.
    #[inline]
    pub(crate) fn pass(self: &Arc<Self>) -> Option<Slot> {
        let generation = self.passing()?;
        Some(Slot::new(Admission { generation, is_probe: false }, self))
    }

    /// Whether a call would be admitted now; see [`Breaker::peek`].
    pub(crate) fn peek(&self, now: impl FnOnce() -> Instant) -> Result<(), OpenFor> {
        match self.passing() {
            Some(_) => Ok(()),
            None => self.machine.lock().peek(self.at(now())),
        }
    }

    /// Admits an attempt, or says for how long it will not; see [`Breaker::admit`].
    pub(crate) fn admit(
        self: &Arc<Self>,
        now: impl FnOnce() -> Instant,
        attempt_timeout: Duration,
    ) -> (Result<Slot, OpenFor>, Option<Transition>) {
        if let Some(slot) = self.pass() {
            return (Ok(slot), None);
        }
        let now = self.at(now());
        let (admitted, moved) = self.change(|machine| machine.admit(now, attempt_timeout));
        (admitted.map(|admission| Slot::new(admission, self)), moved)
    }

    /// Records how an attempt ended; see [`Breaker::record`]. `slot` must be one of this breaker's.
    pub(crate) fn record(
        &self,
        slot: Slot,
        verdict: BreakerVerdict,
        now: impl FnOnce() -> Instant,
        chance: impl FnOnce() -> f64,
    ) -> Option<Transition> {
        let admission = slot.into_admission();
        match verdict {
            _ if !self.counts => None,
            BreakerVerdict::Ignored if !admission.is_probe => None,
            // It causes no transition, whatever its generation.
            BreakerVerdict::Success if !admission.is_probe => {
                self.count_success(now());
                None
            }
            _ => {
                let (now, chance) = (self.at(now()), chance());
                self.change(|machine| machine.record(now, admission, verdict, chance))
            }
        }
    }

    /// Records the success of an attempt that was not a probe.
    #[inline]
    pub(crate) fn succeeded(&self, slot: Slot, now: Instant) {
        debug_assert!(!slot.is_probe(), "a probe that succeeds moves it");
        std::mem::forget(slot); // one of no probe has nothing to give back
        if self.counts {
            self.count_success(now);
        }
    }

    #[inline(always)]
    fn count_success(&self, now: Instant) {
        let slice = self.slicing.slice_at(self.at(now));
        if !self.tally.add(slice) {
            self.turn_tally(slice);
        }
    }

    /// See [`Breaker::give_back`].
    pub(crate) fn give_back(&self, admission: Admission) {
        self.machine.lock().give_back(admission);
    }

    /// See [`Breaker::force_open`].
    pub(crate) fn force_open(&self) -> Option<Transition> {
        self.change(Breaker::force_open)
    }

    /// See [`Breaker::force_closed`].
    pub(crate) fn force_closed(&self) -> Option<Transition> {
        self.change(Breaker::force_closed)
    }

    /// See [`Breaker::reset`].
    pub(crate) fn reset(&self) -> Vec<Transition> {
        self.change(Breaker::reset)
    }

    /// Its state.
    pub(crate) fn state(&self) -> BreakerState {
        self.machine.lock().state()
    }

    /// The counts of its window as of now.
    pub(crate) fn counts(&self, now: Instant) -> Counts {
        let now = self.at(now);
        self.change(|machine| machine.counts(now))
    }

    #[inline]
    fn passing(&self) -> Option<Generation> {
        let gate = self.gate.load(Acquire);
        (gate & PASSES != 0)
            .then(|| Generation(u32::try_from(gate >> 32).expect("the upper half has 32 bits")))
    }

    /// The tally is of another slice: starts one of this slice, and counts the success.
    #[cold]
    fn turn_tally(&self, slice: Slice) {
        let mut machine = self.machine.lock();
        self.fold(&mut machine, slice);
        machine.add_successes(slice, 1);
    }

    /// Changes the machine, after folding in the tally, and updates the gate.
    fn change<T>(&self, change: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut machine = self.machine.lock();
        self.fold(&mut machine, 0);
        let result = change(&mut machine);
        self.gate.store(gate(&machine), Release);
        result
    }

    /// Moves the tally's successes into the machine. The tally continues with the slice `from`, or its own if that is
    /// later.
    fn fold(&self, machine: &mut Breaker, from: Slice) {
        let (slice, count) = self.tally.take(from);
        if count > 0 {
            machine.add_successes(slice, u64::from(count));
        }
    }

    fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.epoch)
    }
}

/// Set in the gate while every call passes; the upper half of the gate is the generation.
const PASSES: u64 = 1;

fn gate(machine: &Breaker) -> u64 {
    machine.passing().map_or(0, |Generation(number)| u64::from(number) << 32 | PASSES)
}
