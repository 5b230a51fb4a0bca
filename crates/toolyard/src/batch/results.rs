//! The results of a batch, as its caller and its turn get them.

use crate::call::{BatchState, Slot};
use std::sync::Arc;
use toolyard_core::{Call, Outcome};

/// Says why a batch whose driver has finished has all its results.
const ALL_ENDED: &str = "every call of a finished batch has a result";

impl BatchState {
    /// A copy of every result, in the order of the calls.
    pub(super) fn copies(&self) -> Vec<Outcome> {
        let results = self.slots.iter().map(Slot::peek).map(|result| result.expect(ALL_ENDED));
        let mut outcomes: Vec<Outcome> = results.collect();
        Self::redact(self.session.engine.results_redactor.as_ref(), &mut outcomes);
        outcomes
    }

    /// Every result, in the order of the calls, moved out of the batch.
    pub(super) fn collect(batch: Arc<Self>) -> Vec<Outcome> {
        let redactor = batch.session.engine.results_redactor.clone();
        // Usually this is the last reference. Then the calls are moved, not copied, within the memory of the slots.
        let mut outcomes: Vec<Outcome> = match &mut Arc::try_unwrap(batch) {
            Ok(alone) => {
                let slots = std::mem::take(&mut alone.slots).into_vec();
                slots.into_iter().map(Slot::into_outcome).map(|result| result.expect(ALL_ENDED)).collect()
            }
            Err(batch) => {
                let taken =
                    batch.slots.iter().map(Slot::take).map(|result| result.expect(ALL_ENDED)).collect();
                batch.release_results();
                taken
            }
        };
        Self::redact(redactor.as_ref(), &mut outcomes);
        outcomes
    }

    /// Drops the results that nobody can ask for any more.
    pub(crate) fn drop_results(&self) {
        if !self.is_open() {
            self.slots.iter().for_each(Slot::drop_result);
            self.release_results();
        }
    }

    /// The results so far, one place per call.
    pub(crate) fn finished(&self) -> Vec<Option<Outcome>> {
        let mut outcomes: Vec<Option<Outcome>> = self.slots.iter().map(Slot::peek).collect();
        Self::redact(self.session.engine.results_redactor.as_ref(), outcomes.iter_mut().flatten());
        outcomes
    }

    /// A copy of the result of the call at this place, if it has one.
    pub(super) fn finished_at(&self, index: u32) -> Option<Outcome> {
        let mut outcome = self.at(index).slot().peek()?;
        Self::redact(self.session.engine.results_redactor.as_ref(), [&mut outcome]);
        Some(outcome)
    }

    /// The result of the call at this place, if it has one: its output moved out, with the room that it held, and a failure
    /// copied.
    pub(super) fn taken_at(&self, index: u32) -> Option<Outcome> {
        let slot = self.at(index).slot();
        let (has_output, bytes) = {
            let life = slot.life();
            let ending = life.ending()?;
            (ending.status.is_ok(), ending.footprint())
        };
        let mut outcome = if has_output { slot.take()? } else { slot.peek()? };
        if has_output {
            self.release_result(bytes);
        }
        Self::redact(self.session.engine.results_redactor.as_ref(), [&mut outcome]);
        Some(outcome)
    }

    /// The result of a call equal to this one, if a handler has run for it.
    pub(crate) fn answer(&self, call: &Call) -> Option<Outcome> {
        let same = |slot: &&Slot| slot.call.name == call.name && slot.call.arguments.means(&call.arguments);
        let mut of_id = self.places_of(call.id.as_str()).iter().map(|place| self.at(*place).slot());
        let slot = of_id.find(same)?;
        slot.peek().filter(|outcome| outcome.attempts > 0)
    }
}
