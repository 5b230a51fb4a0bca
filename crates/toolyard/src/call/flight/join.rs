//! Which call leads a flight, and which ones join it (ID-3, ID-3a).

use crate::{
    call::{
        batch::BatchState, ending::Ending, flight::Flight, in_flight::InFlight, life::Life,
        refusals::Refusal, run::Step,
    },
    keys::{KeyOf, Reserved, already_executed_error, mismatch_error},
};
use parking_lot::MutexGuard;
use std::sync::Arc;
use tokio::time::Instant;
use toolyard_core::KeyConflict;

impl BatchState {
    /// Whether waiting for a flight could mean waiting for itself: an ancestor holds a serial lease, or leads a
    /// flight of its own (ID-3a).
    fn would_deadlock(&self) -> bool {
        if self.is_under_lease() {
            return true;
        }
        let mut above = self.nested.as_deref();
        while let Some(nested) = above {
            if nested.call.at().flight_run_by().is_some() {
                return true;
            }
            above = nested.call.batch.nested.as_deref();
        }
        false
    }

    /// Whether a call above this batch has a lease entry.
    pub(super) fn is_under_lease(&self) -> bool {
        self.nested.as_deref().is_some_and(|nested| nested.is_under_lease)
    }

    /// Whether a cancel of the session at this depth, which is that of this batch or one above it, leaves the batch to
    /// the last caller of a flight: the handler that runs for the flight, and below which the batch was dispatched,
    /// belongs to the cancelled session or to a fork of it (ID-4).
    pub(crate) fn is_left_to_a_flight(&self, cancelled: u8) -> bool {
        let mut above = self.nested.as_deref();
        while let Some(nested) = above {
            let batch = &nested.call.batch;
            if batch.at(nested.call.index).flight().is_some() && batch.session.depth >= cancelled {
                return true;
            }
            above = batch.nested.as_deref();
        }
        false
    }
}

impl<'a> InFlight<'a> {
    /// Reserves the key of a call whose run begins. Returns its phase if the call leads, or if there is no room to
    /// keep the key. Otherwise it waits for the result of another call, or has ended.
    pub(crate) fn lead_or_follow(
        self,
        mut life: MutexGuard<'a, Life>,
        key: &KeyOf<Arc<Flight>>,
        now: Instant,
    ) -> Option<MutexGuard<'a, Life>> {
        let entry = &self.work().entry;
        let mutating = !entry.spec().is_repeatable();
        let lead = || Flight::led_by(self.owned(), self.deadline_of(now));
        let keys = self.session().keys();
        let error = loop {
            match keys.reserve(&key.name, key.fingerprint, now, mutating, lead) {
                Reserved::Lead(flight) => {
                    key.set_flight(flight);
                    return Some(life);
                }
                Reserved::NotRetained => return Some(life),
                Reserved::Join(_) if entry.spec().settings.key_conflict == Some(KeyConflict::Fail) => {
                    break Refusal::KeyInProgress.error();
                }
                Reserved::Join(_) if self.batch.would_deadlock() => break Refusal::WouldDeadlock.error(),
                Reserved::Join(flight) => {
                    let joined = flight.machine().join(self.owned(), self.deadline_of(now));
                    if joined {
                        self.set_deadline_alarm(now);
                        life.follows(now);
                        key.set_flight(flight);
                        return None;
                    }
                    // The flight has just ended; its key is about to be updated.
                    std::hint::spin_loop();
                }
                Reserved::Replay(retained) => {
                    self.share(life, Ending::retained(&retained), Step::EndedAndQuiescent);
                    return None;
                }
                Reserved::AlreadyExecuted => break already_executed_error(),
                Reserved::Mismatch => break mismatch_error(),
                Reserved::Overloaded => break Refusal::KeysFull.error(),
            }
        };
        self.refuse_in(life, error);
        None
    }
}
