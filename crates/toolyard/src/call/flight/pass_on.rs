//! A flight goes from a call that has ended to its oldest follower.

use crate::call::{
    ending::Ending,
    flight::{Flight, machine::PassedOn},
    in_flight::{CallRef, InFlight},
    nested::Report,
    progress::Progress,
    refusals::vanished_error,
};
use std::{sync::Arc, time::Duration};

impl InFlight<'_> {
    /// Passes on the flight of a call that has ended before its first attempt or between two, if another call waits
    /// for it.
    pub(crate) fn pass_on(self, progress: Option<Box<Progress>>) {
        let Some(flight) = self.flight().cloned() else { return };
        // The next one may need the lease above, which this one would keep until the flight is over (ID-3a).
        let waits = !self.batch.is_under_lease();
        let (passed_on, waits) = {
            let mut machine = flight.machine();
            // For one whose attempts were all made in earlier lives of the engine there is nothing to wait for.
            let waits = waits && machine.has_run();
            (machine.pass_on(|call| self.is(call), waits), waits)
        };
        match passed_on {
            PassedOn::Already => {}
            PassedOn::To(next) => {
                let has_run = progress.is_some();
                let hand_over = HandOver { flight, next, progress, done: false };
                self.engine().tasks.spawn(async move { hand_over.run() });
                if has_run && !waits {
                    self.report_up(Report::Quiescent);
                }
            }
            PassedOn::ToNobody => {
                let has_run = progress.is_some();
                match progress {
                    // An attempt that is to be retried has changed nothing, or repeating it does no harm.
                    Some(progress) => {
                        let now = self.engine().clock.now();
                        self.complete(&Err(progress.error.clone()), progress.attempts, true, now);
                        self.spare_retry(*progress);
                    }
                    None => self.forget(),
                }
                flight.abandon();
                if has_run {
                    self.report_up(Report::Quiescent);
                }
            }
        }
    }
}

/// A flight on its way to its oldest follower. If the task that takes it there is dropped, its callers are ended, so
/// that none waits forever (SC-3).
struct HandOver {
    flight: Arc<Flight>,
    next: CallRef,
    progress: Option<Box<Progress>>,
    done: bool,
}

impl HandOver {
    fn run(mut self) {
        self.done = true;
        let call = self.next.at();
        let mut life = call.slot().life();
        let Some(ready_at) = life.takes_over() else {
            drop(life);
            // It has ended meanwhile; try the next one.
            return call.pass_on(self.progress.take());
        };
        match self.progress.take() {
            None => {
                drop(life);
                call.proceed_as_leader(ready_at);
            }
            Some(mut progress) => {
                progress.ready_at = ready_at;
                progress.inherited = true;
                progress.span = tracing::Span::none(); // it belongs to the call that made the attempts
                call.wait_again(life, progress);
            }
        }
    }

    /// Ends all waiting calls at once: the next one could not take over either.
    fn give_up(&self) {
        let call = self.next.at();
        let attempts = self.progress.as_ref().map_or(0, |progress| progress.attempts);
        let error = if attempts > 0 { vanished_error(attempts) } else { vanished_error(0).not_started() };
        let ending = Ending::shared(Err(Box::new(error)), attempts, Duration::ZERO);
        call.complete(&ending.status, attempts, false, call.engine().clock.now());
        match call.slot().life().following() {
            Some(_) => self.flight.machine().take_back(self.next.clone()),
            // It has ended, and becomes quiescent with the flight.
            _ if attempts > 0 => self.flight.machine().add_ended(self.next.clone()),
            _ => {}
        }
        let followers = self.flight.land();
        self.flight.share_with(followers, Some(&ending));
        self.flight.abandon();
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        let call = self.next.at();
        if !self.done && self.flight.is_run_by(call) {
            self.give_up();
        }
    }
}
