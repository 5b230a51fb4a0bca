//! Calls with an idempotency key: which one leads, which ones follow, and how those get its result (ID-3 to ID-7).

use super::batch::BatchState;
use super::end::End;
use super::ending::Ending;
use super::flight::{Flight, Leaving, PassedOn};
use super::in_flight::InFlight;
use super::life::Life;
use super::nested::{CallRef, Report};
use super::progress::Progress;
use super::refusals::{Refusal, vanished};
use super::run::Step;
use crate::keys::{Ended, Finished, KeptResult, KeyOf, Reserved, Retain, already_executed, mismatch};
use std::{
    collections::VecDeque,
    sync::{Arc, MutexGuard},
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::{CallError, Effect, ErrorKind, KeyConflict, Reason, ToolOutput};

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
    fn is_under_lease(&self) -> bool {
        self.nested.as_deref().is_some_and(|nested| nested.is_under_lease)
    }

    /// Whether this batch, whose session is cancelled, must be left to the last caller of a flight: it was dispatched
    /// below a handler that runs for a flight, and the session of that handler is cancelled too (ID-4).
    pub(crate) fn is_left_to_a_flight(&self) -> bool {
        let mut above = self.nested.as_deref();
        while let Some(nested) = above {
            let batch = &nested.call.batch;
            if batch.at(nested.call.index).flight().is_some() && batch.session.stopped().is_some() {
                return true;
            }
            above = batch.nested.as_deref();
        }
        false
    }

    /// Ends the followers of a flight with its result, which is there if they are. They become quiescent when it does.
    fn end_followers(flight: &Flight, followers: VecDeque<CallRef>, ending: Option<&Ending>) {
        if let Some(ending) = ending {
            followers.into_iter().for_each(|call| Self::end_follower(flight, call, ending));
        }
        if let Some((ended, report)) = flight.mark_shared() {
            ended.iter().for_each(|call| call.at().report_up(report));
        }
    }

    fn end_follower(flight: &Flight, call: CallRef, ending: &Ending) {
        let life = call.at().slot().life();
        let Some(ready_at) = life.following() else { return };
        let waited = call.batch.session.engine.clock.now().saturating_duration_since(ready_at);
        let shared = Ending::shared(ending.status.clone(), ending.attempts, waited);
        let shared = Ending { sandbox: ending.sandbox, ..shared };
        flight.add_ended(call.clone());
        call.at().end(life, End::Shared(shared, Step::Ended));
    }
}

impl<'a> InFlight<'a> {
    /// Reserves the key of a call whose run begins. Returns its phase if the call leads, or if there is no room to
    /// keep the key. Otherwise it waits for the result of another call, or has ended.
    pub(crate) fn lead_or_follow(
        self,
        mut life: MutexGuard<'a, Life>,
        key: &KeyOf,
        now: Instant,
    ) -> Option<MutexGuard<'a, Life>> {
        let entry = &self.work().entry;
        let (tool, mutating) = (entry.shared_name(), !entry.spec().is_repeatable());
        let lead = || Flight::led_by(self.owned(), self.deadline_of(now));
        let keys = self.session().keys();
        let error = loop {
            match keys.reserve(&tool, &key.key, key.fingerprint, now, mutating, lead) {
                Reserved::Lead(flight) => {
                    self.slot().make_aside().set_flight(flight);
                    return Some(life);
                }
                Reserved::Unkept => return Some(life),
                Reserved::Join(_) if entry.spec().key_conflict == KeyConflict::Fail => {
                    break Refusal::KeyInProgress.error();
                }
                Reserved::Join(_) if self.batch.would_deadlock() => {
                    break Refusal::WouldDeadlock.error();
                }
                Reserved::Join(flight) => {
                    if flight.join(self.owned(), self.deadline_of(now)) {
                        self.set_deadline_alarm(now);
                        life.follows(now);
                        self.slot().make_aside().set_flight(flight);
                        return None;
                    }
                    // The flight has just ended; its key is about to be updated.
                    std::hint::spin_loop();
                }
                Reserved::Replay(kept) => {
                    self.end(life, End::Shared(Ending::kept(&kept), Step::EndedAndQuiescent));
                    return None;
                }
                Reserved::AlreadyExecuted => break already_executed(),
                Reserved::Mismatch => break mismatch(),
                Reserved::Overloaded => {
                    break Refusal::KeysFull.error();
                }
            }
        };
        self.refuse_in(life, error);
        None
    }

    /// The flight that runs in this call's slot, if any.
    #[inline(always)]
    pub(crate) fn flight_run_by(self) -> Option<&'a Arc<Flight>> {
        self.flight().filter(|flight| flight.is_run_by(self))
    }

    /// The flight that this call leads or has joined, if any.
    #[inline]
    pub(crate) fn flight(self) -> Option<&'a Arc<Flight>> {
        self.slot().aside()?.flight()
    }

    /// Whether a call has joined a flight whose handler has started: a drain waits for it as for a running call.
    pub(crate) fn follows_running_flight(self) -> bool {
        self.slot().life().following().is_some() && self.flight().is_some_and(|flight| flight.has_started())
    }

    /// Ends a call that waits for the result of another. Returns `false` if it is still to get that result: it is on
    /// its way, or the call is the last one for which the handler runs and waits for it to stop.
    pub(crate) fn leave_flight(
        self,
        life: MutexGuard<'_, Life>,
        ready_at: Instant,
        error: CallError,
    ) -> bool {
        let Some(flight) = self.flight().cloned() else { return false };
        match flight.leave(self, error.kind == ErrorKind::Cancelled) {
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
                self.end(life, End::Shared(ending, Step::Ended));
                if flight.is_deserted() {
                    recall(&flight);
                }
            }
            Leaving::Stays => {
                drop(life);
                recall(&flight);
                return false;
            }
            Leaving::ResultComing => return false,
        }
        true
    }

    /// Ends the call in whose slot a flight runs, if other calls wait for the result. Returns whether it did; the
    /// handler then goes on for them.
    pub(crate) fn detach(self, ending: impl FnOnce() -> Ending) -> bool {
        if !self.flight_run_by().is_some_and(|flight| flight.detach()) {
            return false;
        }
        self.slot().make_aside().detach(self.started());
        let ending = ending();
        self.spawn_end_hook(&ending);
        self.end(self.slot().life(), End::Ran(ending, Step::Ended));
        true
    }

    /// Passes on the flight of a call that has ended before its first attempt or between two, if another call waits
    /// for it.
    pub(crate) fn pass_on(self, progress: Option<Box<Progress>>) {
        let Some(flight) = self.flight().cloned() else { return };
        // The next one may need the lease above, which this one would keep until the flight is over (ID-3a).
        let waits = !self.batch.is_under_lease();
        match flight.pass_on(self, waits) {
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
                        self.complete(&Err(progress.error.clone()), progress.attempts, true);
                        self.spare_retry(*progress);
                    }
                    None => self.forget(),
                }
                flight.is_over().iter().for_each(|call| call.at().report_up(Report::Quiescent));
                if has_run {
                    self.report_up(Report::Quiescent);
                }
            }
        }
    }

    /// Forgets the key of a call for which nothing has run: the next call with it leads.
    fn forget(self) {
        let work = self.work();
        if let Some(key) = work.key() {
            self.session().keys().forget(&work.entry.shared_name(), &key.key);
        }
    }

    /// Keeps the result of a flight, or forgets its key (ID-5).
    pub(crate) fn complete(
        self,
        status: &Result<ToolOutput, Box<CallError>>,
        attempts: u32,
        no_side_effect: bool,
    ) {
        let (work, now) = (self.work(), self.engine().clock.now());
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
                let kept = KeptResult { status: status.clone(), attempts, sandbox: self.grant().sandbox };
                let bytes = match status {
                    Ok(output) => output.size(),
                    Err(error) => error.message.len() + error.output_size(),
                };
                Finished::Keep { body: Arc::new(kept), bytes, idempotent: repeatable }
            }
        };
        self.session().keys().complete(&work.entry.shared_name(), &key.key, finished, now);
    }

    /// Ends a flight that runs in this call's slot, and with it the call unless it was detached. Neither becomes
    /// quiescent here.
    pub(crate) fn end_flight(self, flight: &Flight, ending: Ending) {
        let followers = flight.finish();
        if self.is_detached() {
            return BatchState::end_followers(flight, followers, Some(&ending));
        }
        // Most flights have no followers, and then the result is not copied.
        let shared = (!followers.is_empty()).then(|| ending.clone());
        self.end(self.slot().life(), End::Ran(ending, Step::Ended));
        BatchState::end_followers(flight, followers, shared.as_ref());
    }

    /// Adds the calls that become quiescent with the flight in this call's slot: they reach what it has reached.
    pub(crate) fn collect_with_flight(self, report: Report, pending: &mut Vec<(CallRef, Report)>) {
        let Some(flight) = self.flight_run_by() else { return };
        pending.extend(flight.reach(report).into_iter().map(|call| (call, report)));
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
    fn end_all(&self) {
        let call = self.next.at();
        let attempts = self.progress.as_ref().map_or(0, |progress| progress.attempts);
        let error = if attempts > 0 { vanished(attempts) } else { vanished(0).not_started() };
        let ending = Ending::shared(Err(Box::new(error)), attempts, Duration::ZERO);
        call.complete(&ending.status, attempts, false);
        match call.slot().life().following() {
            Some(_) => self.flight.take_back(self.next.clone()),
            // It has ended, and becomes quiescent with the flight.
            _ if attempts > 0 => self.flight.add_ended(self.next.clone()),
            _ => {}
        }
        BatchState::end_followers(&self.flight, self.flight.finish(), Some(&ending));
        self.flight.is_over().iter().for_each(|call| call.at().report_up(Report::Quiescent));
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        let call = self.next.at();
        if !self.done && self.flight.is_run_by(call) {
            self.end_all();
        }
    }
}

/// Tells the handler of a flight to stop: no call waits for its result, or the last one leaves.
fn recall(flight: &Flight) {
    if let Some(call) = flight.runs_in() {
        call.at().recall();
        call.at().stop_below();
    }
}
