//! The one way out of a call's life.
//!
//! ```text
//!   refused, or stopped while it waits ─┐
//!   shares the result of another call ──┼─► End ─► event ─► result ─► budget ─► counted down ─► its flight goes on
//!   its attempt has ended ──────────────┘
//! ```
//!
//! The event is emitted and the result written under the lock of the call's life: nothing of a call follows its
//! terminal event, and nobody sees a result that has not been announced. With a recorder, a call that has run is told of
//! when its record is durable: its attempt has waited for that (`attempt/recorded.rs`), or the call does so before it
//! ends (`leaving.rs`). The record of any other call is given with its end, and the reply of its batch waits for it.

use crate::{
    call::{
        ending::Ending,
        in_flight::InFlight,
        leaving::Leaving,
        life::{Left, Life, Wait},
        progress::{Bid, Progress},
        run::Step,
        span, verdict,
        verdict::Verdict,
    },
    gate,
    record::When,
};
use parking_lot::MutexGuard;
use toolyard_core::{CallError, ErrorKind, Sandbox};

/// How a call ends.
pub(crate) enum End {
    /// It does not run, or does not run again.
    Refused(CallError),
    /// The answer to its question was no.
    Denied(CallError, Box<Verdict>),
    /// The same for a call whose bid has been taken out of its life.
    Outbid(Bid, CallError),
    /// The same for a call whose attempt was recorded and has not started: it is not suspended (SM-10).
    NotStarted(Bid, CallError),
    /// It has a result without an attempt of its own.
    Shared(Ending, Step),
    /// Its attempt has ended, at that time. Its permits have been released, or stay with its handler, which still runs.
    Ran(Ending, Step, When),
    /// Its attempt goes on for other calls.
    Detached(Ending),
}

/// What is left to do when a call has its result.
pub(super) struct Exit {
    pub(super) ending: Ending,
    /// When it ended.
    when: When,
    step: Step,
    /// The failed attempts of a call that is not tried again.
    progress: Option<Box<Progress>>,
    /// A flight runs in its slot, for which another call may wait.
    runs_flight: bool,
    /// It has run, and has no task that would tell the end hook of it.
    owes_hook: bool,
}

impl Exit {
    fn with(ending: Ending, step: Step) -> Self {
        Self { ending, when: When::Now, step, progress: None, runs_flight: false, owes_hook: false }
    }
}

impl InFlight<'_> {
    /// Ends the call. The caller has seen under the lock that it may.
    #[inline(always)]
    pub(crate) fn end(self, mut life: MutexGuard<'_, Life>, end: End) {
        let exit = match end {
            End::Ran(ending, step, when) => {
                self.stream_ends();
                Exit { when, ..Exit::with(ending, step) }
            }
            End::Detached(ending) => {
                self.stream_ends();
                Exit { owes_hook: true, ..Exit::with(ending, Step::Ended) }
            }
            End::Shared(ending, step) => self.shared(ending, step),
            End::Refused(error) => self.refused(life.leaves(), error, None),
            End::Denied(error, verdict) => self.refused(life.leaves(), error, Some(verdict)),
            End::Outbid(Bid { progress: None, .. }, error) => {
                self.refused(Left { was_asking: false, progress: None }, error, None)
            }
            End::Outbid(bid, error) | End::NotStarted(bid, error) => {
                self.ended_early(Left { was_asking: false, progress: bid.progress }, error, None)
            }
        };
        if self.engine().recorder.is_some() && exit.ending.is_told_when_durable() {
            return Leaving::wait(self, life, exit);
        }
        self.exit(life, exit);
    }

    /// Gives the call its result.
    #[inline(always)]
    pub(super) fn exit(self, mut life: MutexGuard<'_, Life>, exit: Exit) {
        let Exit { mut ending, when, step, progress, runs_flight, owes_hook } = exit;
        if owes_hook {
            self.spawn_end_hook(&ending);
        }
        self.emit_end(when, &ending);
        let (ok, has_run) = (ending.status.is_ok(), ending.has_run() && !self.has_only_run_before(&ending));
        let to_be_recorded =
            if self.engine().recorder.is_some() { self.to_be_recorded(&mut ending) } else { None };
        let watch = life.ends(ending);
        drop(life);
        drop(watch);
        if let Some(ending) = to_be_recorded {
            self.record_for_reply(&ending);
        }
        self.settle_reservation(has_run);
        self.tell_end();
        self.count_down(ok, step);
        if runs_flight {
            self.pass_on(progress);
        } else if let Some(progress) = progress {
            self.spare_retry(*progress);
        }
    }

    /// Tells whoever follows the calls of the batch one by one.
    #[inline(always)]
    fn tell_end(self) {
        if let Some(ends) = self.batch.rare().and_then(|rare| rare.ends.get()) {
            let _ = ends.unbounded_send(self.owned()); // nobody may follow any more
        }
    }

    /// Ends a call that has not started, whatever it waits for. Returns `false` if it has started, has ended, or still
    /// waits for the result of its flight.
    pub(crate) fn refuse(self, error: impl FnOnce() -> CallError) -> bool {
        let life = self.slot().life();
        let granted = match life.stop() {
            None => return false,
            // A permit that has just been granted finds the call ended and is released.
            Some(Wait::Queue(ticket)) => Some(self.engine().admission.leave(ticket).1),
            Some(Wait::Flight(ready_at)) => return self.leave_flight(life, ready_at, error()),
            Some(Wait::Line(ticket)) => {
                self.work().entry.guard().queue.leave(ticket);
                None
            }
            Some(Wait::Alone) => None,
        };
        self.refuse_in(life, error());
        if let Some(granted) = granted {
            granted.start();
        }
        true
    }

    /// Ends a call with a no to its question. Returns `false` if nobody asks about it any more.
    #[cold]
    #[inline(never)]
    pub(crate) fn deny(self, error: CallError, verdict: Verdict) -> bool {
        let life = self.slot().life();
        let is_asking = life.is_asking();
        if is_asking {
            self.end(life, End::Denied(error, Box::new(verdict)));
        }
        is_asking
    }

    /// Ends a call that has not started and is in no line.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse_in(self, life: MutexGuard<'_, Life>, error: CallError) {
        self.end(life, End::Refused(error));
    }

    /// The same for a call whose bid has been taken out of its life.
    #[cold]
    #[inline(never)]
    pub(crate) fn refuse_bid(self, life: MutexGuard<'_, Life>, bid: Bid, error: CallError) {
        self.end(life, End::Outbid(bid, error));
    }

    /// Ends a call whose attempt was recorded and has not started.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_unstarted(self, life: MutexGuard<'_, Life>, bid: Bid, error: CallError) {
        self.end(life, End::NotStarted(bid, error));
    }

    /// Ends a call with a result that it shares.
    #[cold]
    #[inline(never)]
    pub(crate) fn share(self, life: MutexGuard<'_, Life>, ending: Ending, step: Step) {
        self.end(life, End::Shared(ending, step));
    }

    /// The exit of a call that waited: it ends, or is suspended.
    fn refused(self, left: Left, error: CallError, verdict: Option<Box<Verdict>>) -> Exit {
        let is_untried = left.progress.as_ref().is_none_or(|progress| self.is_as_before(progress));
        match error.kind == ErrorKind::ShuttingDown && is_untried && self.batch.may_be_resumed() {
            true => self.suspended(left.was_asking, error),
            false => self.ended_early(left, error, verdict),
        }
    }

    /// The exit of a call that goes on in another life of the engine. A question about it stays open (SM-10).
    #[cold]
    fn suspended(self, was_asking: bool, error: CallError) -> Exit {
        if was_asking && let Some(records) = self.batch.records() {
            records.ask_later(self.index);
        }
        let error = self.batch.redacted_error(error.suspended_in(self.batch.turn));
        let ending = Ending::unstarted(error.not_started());
        span::without_attempt(self, &ending);
        let runs_flight = self.flight_run_by().is_some();
        Exit { runs_flight, ..Exit::with(ending, Step::EndedAndQuiescent) }
    }

    /// The exit of a call that ends without an attempt, or without another one.
    fn ended_early(self, left: Left, error: CallError, verdict: Option<Box<Verdict>>) -> Exit {
        let Left { was_asking, progress } = left;
        // It may end before it has made its bid, which begins where earlier lives of the engine have ended. One that is
        // refused at the gate makes none, and no hook hears of it.
        let now = self.engine().clock.now();
        let has_passed = self.cleared().is_some();
        let before = progress.is_none().then(|| self.progress_before(now)).flatten();
        let (progress, refused) = if has_passed { (progress.or(before), None) } else { (progress, before) };
        if was_asking {
            let kind = error.kind;
            self.emit(None, || match &verdict {
                Some(verdict) => verdict.event(Some(kind), None, None),
                None => verdict::unanswered(kind),
            });
        }
        let error = self.batch.redacted_error(error);
        let runs_flight = self.flight_run_by().is_some();
        let ending = match progress.as_ref().or(refused.as_ref()) {
            None => Ending::unstarted(error.not_started()),
            Some(progress) => {
                let sandbox = if has_passed { self.confinement().sandbox } else { Sandbox::Host };
                progress.ending(error, sandbox, now).with_edit(self.edited())
            }
        };
        match &progress {
            // A call that has taken over a flight may never have started itself.
            Some(progress) if !progress.inherited => {
                self.forget_span();
                span::ended(&progress.span, self, &ending);
            }
            _ => span::without_attempt(self, &ending),
        }
        // A call that has run for a flight becomes quiescent with the flight.
        let step = if runs_flight && progress.is_some() { Step::Ended } else { Step::EndedAndQuiescent };
        Exit { runs_flight, owes_hook: progress.is_some(), progress, ..Exit::with(ending, step) }
    }

    /// The exit of a call that shares a result.
    fn shared(self, ending: Ending, step: Step) -> Exit {
        let ending = self.held(ending);
        span::without_attempt(self, &ending);
        Exit::with(ending, step)
    }

    /// Runs the end hook of a call that has run and ends without a task of its own. The call's end does not wait for
    /// the hook.
    fn spawn_end_hook(self, ending: &Ending) {
        if self.engine().hooks.is_none() {
            return;
        }
        let (session, outcome) = (self.session().clone(), self.outcome(ending.clone()));
        self.engine().tasks.spawn(async move {
            gate::ended(&session.engine, &outcome, &session.caller()).await;
        });
    }
}
