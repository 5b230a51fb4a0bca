//! Ending a batch early.

use crate::{
    call::{batch::BatchState, in_flight::InFlight, nested::Parking, run::index, slot::Slot, stop::Stop},
    record::When,
};
use std::sync::Arc;
use toolyard_core::EventKind;

impl BatchState {
    /// Ends every call that has not started, at once. If the reason reaches running calls, they and what they
    /// dispatched are told to stop (SC-4, SC-1). A second stop for another reason finds nothing left to end, but may
    /// reach further.
    pub(crate) fn stop(&self, why: Stop) {
        let mut below = self.stop_own(why);
        // A loop, not recursion: handlers may nest deeply.
        while let Some(batch) = below.pop() {
            below.extend(batch.stop_own(why));
        }
    }

    /// The calls of this id without a result.
    pub(crate) fn open_calls(&self, id: &str) -> impl Iterator<Item = u32> {
        // An ended batch is not worth an index.
        let places = if self.is_open() { self.places_of(id) } else { &[] };
        places.iter().copied().filter(|place| !self.at(*place).slot().is_ended())
    }

    /// Cancels the calls of this id without a result. Returns how many there were.
    pub(crate) fn cancel_calls(&self, id: &str) -> usize {
        self.open_calls(id).filter(|place| self.at(*place).cancel_call()).count()
    }

    /// Cancels the call at this place. Returns whether there is one without a result.
    pub(crate) fn cancel_call_at(&self, place: u32) -> bool {
        (place as usize) < self.slots.len() && self.at(place).cancel_call()
    }

    /// The number of calls without a result.
    pub(crate) fn open_count(&self) -> usize {
        self.slots.iter().filter(|slot| !slot.is_ended()).count()
    }

    /// Tells running calls and what they dispatched to stop, and ends calls that share a running flight.
    pub(crate) fn cancel(&self) {
        for index in 0..index(self.slots.len()) {
            if self.at(index).follows_running_flight() {
                self.at(index).refuse(|| Stop::Cancelled.error());
            }
        }
        self.cancel_running();
        self.below().iter().for_each(|batch| batch.stop(Stop::Cancelled));
    }

    /// Stops this batch alone; returns the batches dispatched by its handlers that must stop too.
    fn stop_own(&self, why: Stop) -> Vec<Arc<Self>> {
        let first = self.stopped.set(why).is_ok();
        if first && why == Stop::Cancelled && self.is_open() {
            self.emit_turn(When::Now, || EventKind::TurnCancelled);
        }
        for index in 0..index(self.slots.len()) {
            if why.reaches_running() || !self.at(index).follows_running_flight() {
                self.at(index).refuse(|| why.error());
            }
        }
        self.withdraw_questions();
        if !why.reaches_running() {
            return Vec::new();
        }
        self.cancel_running();
        self.below()
    }

    /// The batches that handlers of this one have in flight.
    fn below(&self) -> Vec<Arc<Self>> {
        // A flight is stopped by the last of its callers.
        let alone = self.slots.iter().filter(|slot| slot.flight().is_none());
        alone.filter_map(Slot::parking).flat_map(Parking::children).collect()
    }
}

impl InFlight<'_> {
    /// Cancels one call: ends it at once if it has not started, else tells it and what it dispatched to stop (SC-4).
    /// Returns `false` if it has ended.
    pub(crate) fn cancel_call(self) -> bool {
        if self.refuse(|| Stop::Cancelled.error()) {
            self.withdraw_question();
            return true;
        }
        if self.slot().is_ended() {
            return false;
        }
        match self.flight() {
            None => {
                self.tell_to_stop();
                self.stop_below();
            }
            // Other calls may wait for its result.
            Some(_) => self.mark_call_cancelled(),
        }
        // It may have begun to wait for its next attempt in between.
        self.refuse(|| Stop::Cancelled.error());
        true
    }

    /// Stops what the handler of a call has dispatched.
    pub(crate) fn stop_below(self) {
        let below = self.slot().parking().map(Parking::children);
        below.into_iter().flatten().for_each(|batch| batch.stop(Stop::Cancelled));
    }
}
