//! The result of a flight: it is kept under its key, and given to everyone who waits for it (ID-5, ID-6).

use crate::{
    call::{
        end::End,
        ending::Ending,
        flight::Flight,
        in_flight::{CallRef, InFlight},
        run::Step,
    },
    keys::{Ended, Finished, Retain, RetainedResult},
    record::When,
};
use std::collections::VecDeque;
use tokio::time::Instant;
use toolyard_core::{Arguments, CallError, Reason, ToolOutput, edited};

impl Flight {
    /// Ends its followers with its result, which is there if they are. They become quiescent when it does.
    pub(super) fn share_with(&self, followers: VecDeque<CallRef>, ending: Option<&Ending>) {
        if let Some(ending) = ending {
            followers.into_iter().for_each(|call| self.share_with_one(call, ending));
        }
        self.mark_shared();
    }

    fn share_with_one(&self, call: CallRef, ending: &Ending) {
        let life = call.at().slot().life();
        let Some(ready_at) = life.following() else { return };
        let waited = call.batch.session.engine.clock.now().saturating_duration_since(ready_at);
        let shared = Ending::shared(ending.status.clone(), ending.attempts, waited);
        let shared = Ending { sandbox: ending.sandbox, ..shared };
        self.machine().add_ended(call.clone());
        call.at().share(life, shared, Step::Ended);
    }
}

impl InFlight<'_> {
    /// Forgets the key of a call for which nothing has run: the next call with it leads.
    pub(super) fn forget(self) {
        if let Some(key) = self.work().key() {
            self.session().keys().forget(&key.name);
        }
    }

    /// Keeps the result of a flight, or forgets its key (ID-5).
    pub(crate) fn complete(
        self,
        status: &Result<ToolOutput, Box<CallError>>,
        attempts: u32,
        no_side_effect: bool,
        now: Instant,
    ) {
        let work = self.work();
        let Some(key) = work.key() else { return };
        let repeatable = work.entry.spec().is_repeatable();
        let error = status.as_ref().err().map(|error| error.kind);
        let is_unheld = status.as_ref().is_err_and(|error| error.reason == Some(Reason::ResultBudget));
        // What had no room is not kept in place of it, if running it again does no harm.
        let started = attempts > 0 && !(is_unheld && repeatable);
        let ended = Ended { error, started, repeatable, no_side_effect };
        let finished = match ended.retain() {
            Retain::Forget => Finished::Forget,
            Retain::Keep => {
                let bytes = match status {
                    Ok(output) => output.size(),
                    Err(error) => error.message.len() + error.output_size(),
                };
                let edited = edited(status).map_or(0, |args| Arguments::Json(args.clone()).size());
                let body = RetainedResult::of(status, attempts, self.confinement().sandbox);
                Finished::Keep { body, bytes: bytes + edited, idempotent: repeatable }
            }
        };
        self.session().keys().complete(&key.name, finished, now);
    }

    /// Lands a flight that runs in this call's slot, and with it the call unless it was detached. Neither becomes
    /// quiescent here.
    pub(crate) fn land(self, flight: &Flight, ending: Ending) {
        let followers = flight.land();
        if self.is_detached() {
            return flight.share_with(followers, Some(&ending));
        }
        // Most flights have no followers, and then the result is not copied.
        let shared = (!followers.is_empty()).then(|| ending.clone());
        self.end(self.slot().life(), End::Ran(ending, Step::Ended, When::Now));
        flight.share_with(followers, shared.as_ref());
    }
}
