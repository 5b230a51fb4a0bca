//! What becomes of a result that there is no room for, and of calls behind it.

use crate::call::{
    batch::BatchState,
    ending::Ending,
    holding::{Capacities, Full},
    in_flight::InFlight,
    refusals::Refusal,
};
use toolyard_core::{CallError, Effect, ErrorKind, Reason};

impl BatchState {
    #[inline]
    fn capacities(&self) -> Capacities<'_> {
        let engine = &self.session.engine;
        let batch_max = engine.limits.results_batch_bytes_max;
        Capacities { batch_max, session: self.session.result_capacity(), engine: &engine.results }
    }

    /// Why a call must not start, if there is no room for results.
    #[inline]
    pub(crate) fn no_room(&self) -> Option<Box<CallError>> {
        self.holding.full(&self.capacities()).map(|full| {
            let (whose, max) = full.bound(&self.capacities());
            Refusal::ResultsFull { whose, max }.boxed()
        })
    }

    /// Lets go of the memory of one result, which its caller has taken before the others.
    pub(crate) fn release_result(&self, bytes: usize) {
        self.holding.let_go(bytes, self.session.result_capacity(), &self.session.engine.results);
    }

    /// Lets go of the memory of its results: they have been taken, or are dropped.
    pub(crate) fn release_results(&self) {
        self.holding.release(self.session.result_capacity(), &self.session.engine.results);
    }
}

impl InFlight<'_> {
    /// Makes room for a result. If there is none, the result is replaced by an error that says so.
    pub(crate) fn held(self, mut ending: Ending) -> Ending {
        if let Err(error) = self.hold(ending.footprint()) {
            let edited = ending.edited().cloned();
            ending.status = Err(Box::new(error.after_attempts(ending.attempts)));
            ending = ending.with_edit(edited);
        }
        ending
    }

    /// Holds a result of this size; the error in its place if there is no room.
    #[inline]
    pub(crate) fn hold(self, bytes: usize) -> Result<(), CallError> {
        self.batch.holding.hold(bytes, &self.batch.capacities()).map_err(|full| self.unheld(bytes, full))
    }

    #[cold]
    fn unheld(self, bytes: usize, full: Full) -> CallError {
        let (whose, max) = full.bound(&self.batch.capacities());
        let message = format!(
            "the call ran, but there is no room for its result of {bytes} bytes: the results of {whose} may hold {max}"
        );
        let mut error = CallError::new(ErrorKind::OutputTooLarge, message)
            .with_reason(Reason::ResultBudget)
            .with_advice("Ask for less at a time, in a smaller batch.");
        if let Some(work) = self.cleared() {
            let spec = work.entry.spec();
            error.effect = if spec.side_effects.is_read_only() { Effect::Failed } else { Effect::Unknown };
            error.retryable = spec.is_repeatable();
        }
        error
    }
}
