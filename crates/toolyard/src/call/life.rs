//! Where a call is in its life: a pure machine, with no lock, clock or task.
//!
//! ```text
//!   waiting ─┬─► asking ─────► waiting                      a person is asked
//!            ├─► following ──► waiting                      another call leads its flight, or did
//!            ├─► in line ────► waiting                      its tool has no rate token
//!            ├─► queued ─────► waiting                      its permits are not free
//!            └─► running ──┬─► backing off ──► waiting      it failed and is tried again
//!                          └─► ended ──► taken
//!   any of those above ──────► ended, or recording its end ──► ended
//! ```
//!
//! A call on its way from one wait to the next is *waiting*: whoever moves it there holds the lock of its slot until it
//! is in the next one. Each move says what there is to do, or that the call is elsewhere by now and there is nothing.

#[cfg(test)]
mod tests;

use crate::{
    call::{
        ending::{Ending, Recorded},
        progress::{Bid, Progress},
    },
    tool::rate,
};
use std::task::Waker;
use tokio::time::Instant;
use toolyard_admission::{Held, Ticket};

/// Where a call is in its life.
pub(crate) struct Life(Phase);

enum Phase {
    /// Its run has not begun, or it is on its way to its permits.
    Waiting,
    /// The approver is being asked; `run_begun` once the call's run has begun and waits for the answer, `shown` once the
    /// question has been announced.
    Asking { run_begun: bool, shown: bool },
    /// It waits for the result of another call that is in flight under its key.
    Following { ready_at: Instant },
    /// It waits for a rate token of its tool.
    InLine { ticket: rate::Ticket, bid: Bid },
    /// It is queued for its permits.
    Queued { ticket: Ticket, bid: Bid },
    /// It waits for the end of the backoff before its next attempt.
    BackingOff(Box<Progress>),
    /// It has its permits; only its attempt ends it.
    Running(RunningCall),
    /// It has run and ends, and is told of when its record is durable (SM-4). Nothing moves it any more. What its
    /// handlers end with meanwhile, which goes on for others, is told after that.
    RecordingEnd { late: Vec<LateResult> },
    /// It has its one result. Its handler may still run, as a zombie or for other calls of its flight.
    Ended(Ending),
    /// Its result has been moved out.
    Taken,
}

/// What a handler has ended with whose call was over by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LateResult {
    /// The attempt that it was.
    pub(crate) attempt: u32,
    pub(crate) ok: bool,
}

/// A call that has its permits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) held: Held,
    /// The instant by which it must have ended.
    pub(crate) deadline: Option<Instant>,
}

/// A call whose handler runs.
pub(crate) struct RunningCall {
    pub(crate) started: Started,
    /// The waker of the task that drives it, used when the call is cancelled. Fits into the space that `Ending` needs
    /// later.
    waker: Option<Waker>,
}

impl From<Started> for RunningCall {
    fn from(started: Started) -> Self {
        Self { started, waker: None }
    }
}

impl RunningCall {
    /// Keeps the waker of the task that drives it; returns the one before, to be dropped outside of any lock.
    pub(crate) fn keep_waker(&mut self, task: &Waker) -> Option<Waker> {
        let is_known = self.waker.as_ref().is_some_and(|known| known.will_wake(task));
        if is_known { None } else { self.waker.replace(task.clone()) }
    }

    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        self.waker.take()
    }
}

/// What a call that is to end without having started waits for, and has to be taken out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Nothing that knows of it.
    Alone,
    /// Permits.
    Queue(Ticket),
    /// A rate token.
    Line(rate::Ticket),
    /// The result of its flight, since this instant.
    Flight(Instant),
}

/// A wait with a limit, for what is told when the time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limited {
    /// For a token or for permits, since this instant.
    Attempt(Instant),
    /// For anything else with a deadline alone.
    Deadline,
}

/// What a call that ends has left behind.
pub(crate) struct Left {
    /// A question about it is open, and has been shown.
    pub(crate) was_asking: bool,
    /// Its failed attempts, if it has been tried before.
    pub(crate) progress: Option<Box<Progress>>,
}

impl Life {
    pub(crate) fn new() -> Self {
        Self(Phase::Waiting)
    }

    /// The approver is asked about it, or is to be, if the question is not `shown` yet. `false` if it has ended before
    /// that.
    #[must_use]
    pub(crate) fn asks(&mut self, shown: bool) -> bool {
        let waits = self.is_waiting();
        if waits {
            self.0 = Phase::Asking { run_begun: false, shown };
        }
        waits
    }

    /// The question about it is shown. `false` if nobody is to be asked any more.
    #[must_use]
    pub(crate) fn shows(&mut self) -> bool {
        let Phase::Asking { shown, .. } = &mut self.0 else { return false };
        *shown = true;
        true
    }

    /// It is approved. Returns whether its run has begun, so that it proceeds now; `None` if nobody asks about it any
    /// more.
    #[must_use]
    pub(crate) fn approved(&mut self) -> Option<bool> {
        let Phase::Asking { run_begun, .. } = self.0 else { return None };
        self.0 = Phase::Waiting;
        Some(run_begun)
    }

    /// Its run begins. Returns whether it may proceed; if it is being asked about, it proceeds with the answer.
    #[must_use]
    #[inline]
    pub(crate) fn run_begins(&mut self) -> bool {
        match &mut self.0 {
            Phase::Waiting => true,
            Phase::Asking { run_begun, .. } => {
                *run_begun = true;
                false
            }
            _ => false,
        }
    }

    /// It joins the flight of another call.
    pub(crate) fn follows(&mut self, ready_at: Instant) {
        self.moves_on(Phase::Following { ready_at });
    }

    /// It takes over the flight that it has joined. Returns since when it has waited; `None` if it waits no more.
    #[must_use]
    pub(crate) fn takes_over(&mut self) -> Option<Instant> {
        let Phase::Following { ready_at } = self.0 else { return None };
        self.0 = Phase::Waiting;
        Some(ready_at)
    }

    /// It joins the line for rate tokens.
    pub(crate) fn joins_line(&mut self, ticket: rate::Ticket, bid: Bid) {
        self.moves_on(Phase::InLine { ticket, bid });
    }

    /// It has a rate token. Returns its bid; `None` if it is not in line any more.
    #[must_use]
    pub(crate) fn token_granted(&mut self) -> Option<Bid> {
        match std::mem::replace(&mut self.0, Phase::Waiting) {
            Phase::InLine { bid, .. } => Some(bid),
            other => self.stays(other),
        }
    }

    /// It is queued for its permits.
    pub(crate) fn queues(&mut self, ticket: Ticket, bid: Bid) {
        self.moves_on(Phase::Queued { ticket, bid });
    }

    /// Its permits are granted. Returns its bid; `None` if it is not queued any more.
    #[must_use]
    pub(crate) fn granted(&mut self) -> Option<Bid> {
        match std::mem::replace(&mut self.0, Phase::Waiting) {
            Phase::Queued { bid, .. } => Some(bid),
            other => self.stays(other),
        }
    }

    /// Its attempt starts, with its permits.
    #[inline]
    pub(crate) fn starts(&mut self, started: Started) {
        self.moves_on(Phase::Running(started.into()));
    }

    /// It waits for its next attempt: its last one failed, or it has taken over a flight whose last attempt failed.
    /// Returns the waker of the task that drove it, to be dropped outside of the lock.
    pub(crate) fn failed(&mut self, progress: Box<Progress>) -> Option<Waker> {
        let waker = self.waker();
        debug_assert!(matches!(self.0, Phase::Waiting | Phase::Running(_)), "only an attempt fails");
        self.0 = Phase::BackingOff(progress);
        waker
    }

    /// Its backoff is over. Returns its failed attempts; `None` if it does not wait for another any more.
    #[must_use]
    pub(crate) fn backed_off(&mut self) -> Option<Box<Progress>> {
        match std::mem::replace(&mut self.0, Phase::Waiting) {
            Phase::BackingOff(progress) => Some(progress),
            other => self.stays(other),
        }
    }

    /// What it has to be taken out of to end without having started; `None` if it runs or has ended.
    #[must_use]
    pub(crate) fn stop(&self) -> Option<Wait> {
        match &self.0 {
            Phase::Waiting | Phase::Asking { .. } | Phase::BackingOff(_) => Some(Wait::Alone),
            Phase::Queued { ticket, .. } => Some(Wait::Queue(*ticket)),
            Phase::InLine { ticket, .. } => Some(Wait::Line(*ticket)),
            Phase::Following { ready_at } => Some(Wait::Flight(*ready_at)),
            Phase::Running(_) | Phase::RecordingEnd { .. } | Phase::Ended(_) | Phase::Taken => None,
        }
    }

    /// Takes out of a waiting call what it ends with. It waits for nothing then.
    pub(crate) fn leaves(&mut self) -> Left {
        let was_asking = matches!(self.0, Phase::Asking { shown: true, .. });
        let progress = match std::mem::replace(&mut self.0, Phase::Waiting) {
            Phase::BackingOff(progress) => Some(progress),
            Phase::Queued { bid, .. } | Phase::InLine { bid, .. } => bid.progress,
            Phase::Waiting | Phase::Asking { .. } | Phase::Following { .. } => None,
            other @ (Phase::Running(_) | Phase::RecordingEnd { .. } | Phase::Ended(_) | Phase::Taken) => {
                debug_assert!(false, "only its attempt ends a call that has started");
                self.stays(other)
            }
        };
        Left { was_asking, progress }
    }

    /// It ends when its record is durable. Returns the waker of the task that drove it, to be dropped outside of the
    /// lock.
    pub(crate) fn records_end(&mut self) -> Option<Waker> {
        debug_assert!(!self.is_ended(), "a call has one result");
        let waker = self.waker();
        self.0 = Phase::RecordingEnd { late: Vec::new() };
        waker
    }

    /// Keeps what a handler has ended with until its call has been told of. `false` if it has been.
    #[must_use]
    pub(crate) fn holds_back(&mut self, result: LateResult) -> bool {
        let Phase::RecordingEnd { late } = &mut self.0 else { return false };
        late.push(result);
        true
    }

    /// Takes what was kept so.
    pub(crate) fn take_held_back(&mut self) -> Vec<LateResult> {
        let Phase::RecordingEnd { late } = &mut self.0 else { return Vec::new() };
        std::mem::take(late)
    }

    /// It ends: it has its one result. Returns the waker of the task that drove it, to be dropped outside of the lock.
    #[inline]
    pub(crate) fn ends(&mut self, ending: Ending) -> Option<Waker> {
        debug_assert!(!self.is_ended(), "a call has one result");
        let waker = self.waker();
        self.0 = Phase::Ended(ending);
        waker
    }

    /// Moves its result out; `None` if it has none, or it has been moved out before.
    #[must_use]
    pub(crate) fn take(&mut self) -> Option<Ending> {
        match std::mem::replace(&mut self.0, Phase::Taken) {
            Phase::Ended(ending) => Some(ending),
            other => self.stays(other),
        }
    }

    /// Notes that its result could not be recorded.
    pub(crate) fn mark_unrecorded(&mut self) {
        if let Phase::Ended(ending) = &mut self.0 {
            ending.recorded = Recorded::Failed;
        }
    }

    /// Its result, if it has one that has not been moved out.
    #[inline]
    pub(crate) fn ending(&self) -> Option<&Ending> {
        if let Phase::Ended(ending) = &self.0 { Some(ending) } else { None }
    }

    /// The same for a call that nobody else looks at any more.
    #[inline]
    pub(crate) fn into_ending(self) -> Option<Ending> {
        if let Self(Phase::Ended(ending)) = self { Some(ending) } else { None }
    }

    /// It is on its way: it waits for nothing that would move it.
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.0, Phase::Waiting)
    }

    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.0, Phase::Asking { .. })
    }

    /// Since when it has waited for the result of its flight, if it does.
    pub(crate) fn following(&self) -> Option<Instant> {
        if let Phase::Following { ready_at } = self.0 { Some(ready_at) } else { None }
    }

    pub(crate) fn is_in_line(&self) -> bool {
        matches!(self.0, Phase::InLine { .. })
    }

    pub(crate) fn is_queued(&self) -> bool {
        matches!(self.0, Phase::Queued { .. })
    }

    /// Its permits and its task, while its handler runs for it.
    #[inline]
    pub(crate) fn running(&mut self) -> Option<&mut RunningCall> {
        if let Phase::Running(running) = &mut self.0 { Some(running) } else { None }
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.0, Phase::Running(_))
    }

    #[inline]
    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.0, Phase::Ended(_) | Phase::Taken)
    }

    /// It has ended, or does as soon as that is recorded.
    pub(crate) fn is_over(&self) -> bool {
        self.is_ended() || matches!(self.0, Phase::RecordingEnd { .. })
    }

    /// What limits its wait, if it waits for something with a limit.
    pub(crate) fn limited(&self) -> Option<Limited> {
        match &self.0 {
            Phase::Queued { bid, .. } | Phase::InLine { bid, .. } => Some(Limited::Attempt(bid.ready_at)),
            Phase::Following { .. } | Phase::BackingOff(_) => Some(Limited::Deadline),
            _ => None,
        }
    }

    /// Into a wait, or into its attempt. Only a call on its way gets there.
    #[inline]
    fn moves_on(&mut self, to: Phase) {
        debug_assert!(self.is_waiting(), "only a call on its way moves on");
        self.0 = to;
    }

    /// Leaves it where it is.
    fn stays<T>(&mut self, phase: Phase) -> Option<T> {
        self.0 = phase;
        None
    }

    #[inline]
    fn waker(&mut self) -> Option<Waker> {
        self.running()?.take_waker()
    }
}
