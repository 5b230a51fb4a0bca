//! What becomes of a flight when one of its callers leaves (ID-4).

use crate::call::{
    end::End,
    ending::Ending,
    flight::{Flight, machine::Leaving},
    in_flight::InFlight,
    life::Life,
    run::Step,
};
use parking_lot::MutexGuard;
use tokio::time::Instant;
use toolyard_core::{CallError, Effect, ErrorKind};

impl InFlight<'_> {
    /// Ends a call that waits for the result of another. Returns `false` if it is still to get that result: it is on
    /// its way, or the call is the last one for which the handler runs and waits for it to stop.
    pub(crate) fn leave_flight(
        self,
        life: MutexGuard<'_, Life>,
        ready_at: Instant,
        error: CallError,
    ) -> bool {
        let Some(flight) = self.flight().cloned() else { return false };
        let may_stay = error.kind == ErrorKind::Cancelled;
        let leaving = flight.machine().leave(|call| self.is(call), may_stay);
        match leaving {
            Leaving::Unstarted => self.refuse_in(life, error),
            Leaving::EndsWithFlight { attempts } => {
                let now = self.engine().clock.now();
                let mut error = error.after_attempts(attempts);
                if error.kind == ErrorKind::DeadlineExceeded {
                    error.message = "the call's deadline passed while it waited for another call with the same idempotency key".to_owned();
                }
                let only_looks = self.work().entry.spec().side_effects.is_read_only();
                error.set_effect(if only_looks { Effect::Failed } else { Effect::Unknown });
                let ending =
                    Ending::shared(Err(Box::new(error)), attempts, now.saturating_duration_since(ready_at));
                self.share(life, ending, Step::Ended);
                if flight.machine().is_deserted() {
                    tell_to_stop(&flight);
                }
            }
            Leaving::Stays => {
                drop(life);
                tell_to_stop(&flight);
                return false;
            }
            Leaving::ResultComing => return false,
        }
        true
    }

    /// Ends the call in whose slot a flight runs, if other calls wait for the result. Returns whether it did; the
    /// handler then goes on for them.
    pub(crate) fn detach(self, ending: impl FnOnce() -> Ending) -> bool {
        if !self.flight_run_by().is_some_and(|flight| flight.machine().detach()) {
            return false;
        }
        self.slot().make_rare().detach(self.started());
        let ending = ending();
        self.end(self.slot().life(), End::Detached(ending));
        true
    }
}

/// Tells the handler of a flight to stop: no call waits for its result, or the last one leaves.
fn tell_to_stop(flight: &Flight) {
    if let Some(call) = flight.runs_in() {
        call.at().tell_to_stop();
        call.at().stop_below();
    }
}
