//! One slot per call: where the call is, and in the end its one result (SC-3).

#[cfg(test)]
mod tests;

use super::nested::Nest;
use super::progress::{Bid, Progress};
use super::rare::Aside;
use crate::{
    admission::{Held, Ticket},
    gate::Cleared,
    keys::KeptResult,
    tool::rate,
};
use once_cell::race::OnceBox;
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::Waker,
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::{Call, CallError, CallId, Dedupe, Elapsed, Outcome, Routing, Sandbox, ToolOutput};

/// Where a call is. It only moves down this list, unless it is retried.
pub(crate) enum Phase {
    /// Its run has not begun, or it is on its way to its permits.
    Waiting,
    /// The approver is being asked; `run_begun` once the call's run has begun and waits for the answer.
    Asking { run_begun: bool },
    /// It waits for the result of another call that is in flight under its key.
    Following { ready_at: Instant },
    /// It waits outside the queue for permits and holds nothing (CC-5).
    Delayed(Delayed),
    /// It is queued for its permits.
    Queued { ticket: Ticket, bid: Bid },
    /// It has its permits; only its attempt ends it.
    Started(RunningCall),
    /// It has its one result. Its handler may still run, as a zombie or for other calls of its flight.
    Ended(Ending),
    /// Its result has been moved out.
    Taken,
}

/// What a call waits for outside the queue for permits.
pub(crate) enum Delayed {
    /// The end of the backoff before its next attempt.
    Backoff(Box<Progress>),
    /// A rate token of its tool.
    Rate { ticket: rate::Ticket, bid: Bid },
}

impl Phase {
    /// The failed attempts of a call that waits, if it has been tried before.
    pub(crate) fn into_progress(self) -> Option<Box<Progress>> {
        match self {
            Self::Delayed(Delayed::Backoff(progress)) => Some(progress),
            Self::Queued { bid, .. } | Self::Delayed(Delayed::Rate { bid, .. }) => bid.progress,
            Self::Waiting
            | Self::Asking { .. }
            | Self::Following { .. }
            | Self::Started(_)
            | Self::Ended(_)
            | Self::Taken => None,
        }
    }

    /// Takes the waker of the task that drives a call whose handler is over. The caller drops it outside of the lock,
    /// as in [`Slot::register_waker`].
    pub(crate) fn take_waker(&mut self) -> Option<Waker> {
        if let Self::Started(running) = self { running.waker.take() } else { None }
    }
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

/// How a call ended: its [`Outcome`] without the parts that its [`Call`] has already.
#[derive(Clone)]
pub(crate) struct Ending {
    pub(crate) status: Result<ToolOutput, Box<CallError>>,
    pub(crate) queued: Elapsed,
    pub(crate) ran: Elapsed,
    pub(crate) attempts: u32,
    pub(crate) sandbox: Sandbox,
    pub(crate) cancel_requested: bool,
    pub(crate) dedupe: Dedupe,
}

impl Ending {
    /// The outcome of this call as its caller sees it.
    #[inline]
    fn outcome(self, call: Call, routing: Routing, run: u32) -> Outcome {
        let mut outcome = Outcome::of_call(call, routing, self.status);
        outcome.run = run;
        outcome.attempts = self.attempts;
        outcome.set_times(self.queued, self.ran);
        outcome.sandbox = self.sandbox;
        outcome.cancel_requested = self.cancel_requested;
        outcome.dedupe = self.dedupe;
        outcome
    }

    /// How much memory its result takes, in bytes, more or less.
    pub(crate) fn footprint(&self) -> usize {
        match &self.status {
            Ok(output) => output.footprint(),
            Err(error) => error.footprint(),
        }
    }

    /// The end of a call that this turn has answered before.
    pub(crate) fn replayed(outcome: Outcome) -> Self {
        Self {
            status: outcome.status,
            queued: Elapsed::default(),
            ran: Elapsed::default(),
            attempts: outcome.attempts,
            sandbox: outcome.sandbox,
            cancel_requested: outcome.cancel_requested,
            dedupe: Dedupe::Replayed,
        }
    }

    /// The end of a call for which a result is kept under its key.
    pub(crate) fn kept(kept: &KeptResult) -> Self {
        let shared = Self::shared(kept.status.clone(), kept.attempts, Duration::ZERO);
        Self { sandbox: kept.sandbox, dedupe: Dedupe::Replayed, ..shared }
    }

    /// The end of a call that shares the result of another call.
    pub(crate) fn shared(
        status: Result<ToolOutput, Box<CallError>>,
        attempts: u32,
        waited: Duration,
    ) -> Self {
        Self {
            status,
            queued: waited.into(),
            ran: Elapsed::default(),
            attempts,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            dedupe: Dedupe::Joined,
        }
    }

    /// The end of a call whose task was dropped.
    pub(crate) fn vanished(error: CallError, queued: Duration) -> Self {
        Self { queued: queued.into(), attempts: error.attempts, ..Self::unstarted(error) }
    }

    /// The end of a call that never started.
    pub(crate) fn unstarted(error: CallError) -> Self {
        Self {
            status: Err(Box::new(error)),
            queued: Elapsed::default(),
            ran: Elapsed::default(),
            attempts: 0,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            dedupe: Dedupe::Fresh,
        }
    }
}

/// A call of a batch: what it is, what the gate made of it, and where it is.
pub(crate) struct Slot {
    pub(crate) call: Call,
    pub(crate) routing: Routing,
    pub(crate) run: u32,
    /// What the gate let through; `None` for a refused call.
    pub(crate) work: Option<Cleared>,
    /// Whether the engine has a tool of this name: only such names appear in events (OB-4).
    pub(crate) known: bool,
    phase: Mutex<Phase>,
    aside: OnceBox<Aside>,
    nesting: AtomicU8,
    /// Whether it has reserved budget, which is refunded if it ends without having started (RT-11).
    reserved: AtomicBool,
}

/// The handler has dispatched nothing so far.
const ALONE: u8 = 0;
/// The handler has dispatched calls: its nest releases what it holds.
const NESTED: u8 = 1;
/// The handler is over and has dispatched nothing.
const CLOSED: u8 = 2;

impl Slot {
    /// A call that the gate let through.
    pub(crate) fn cleared(call: Call, work: Cleared) -> Self {
        Self::new(call, work.class.into(), Some(work), true)
    }

    /// A call that the gate refused; `known` if the engine has a tool of its name.
    pub(crate) fn refused(call: Call, known: bool) -> Self {
        Self::new(call, Routing::ShortCircuit, None, known)
    }

    /// A call that has its result before its run begins.
    pub(crate) fn answered(call: Call, routing: Routing) -> Self {
        Self::new(call, routing, None, true)
    }

    fn new(call: Call, routing: Routing, work: Option<Cleared>, known: bool) -> Self {
        Self {
            call,
            routing,
            run: 0,
            work,
            known,
            phase: Mutex::new(Phase::Waiting),
            aside: OnceBox::new(),
            nesting: AtomicU8::new(ALONE),
            reserved: AtomicBool::new(false),
        }
    }

    /// The call's nest, created if its handler runs and has none.
    pub(crate) fn open_nest(&self) -> Option<&Nest> {
        let held = self.started()?.held;
        let nest = self.make_aside().nest.get_or_init(|| Box::new(Nest::new(held)));
        let was = self.nesting.compare_exchange(ALONE, NESTED, Ordering::AcqRel, Ordering::Acquire);
        (was != Err(CLOSED)).then_some(nest)
    }

    /// The permits and the deadline of a call whose handler runs.
    pub(crate) fn started(&self) -> Option<Started> {
        self.with_running(|running| running.started)
    }

    /// Registers the task to be woken when a running call is cancelled.
    pub(crate) fn register_waker(&self, task: &Waker) {
        // The previous waker is dropped outside of the lock, because dropping a waker may run any code.
        let _before = self.with_running(|running| {
            let is_known = running.waker.as_ref().is_some_and(|known| known.will_wake(task));
            if is_known { None } else { running.waker.replace(task.clone()) }
        });
    }

    /// Takes the waker of the task that drives a running call. The task registers again if it continues to wait.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        self.with_running(|running| running.waker.take()).flatten()
    }

    fn with_running<T>(&self, look: impl FnOnce(&mut RunningCall) -> T) -> Option<T> {
        match &mut *self.phase() {
            Phase::Started(running) => Some(look(running)),
            Phase::Ended(_) | Phase::Taken => self.aside()?.with_detached_run(look),
            _ => None,
        }
    }

    /// The call's nest, if it has one.
    pub(crate) fn nest(&self) -> Option<&Nest> {
        (self.nesting.load(Ordering::Acquire) == NESTED)
            .then(|| self.aside()?.nest.get())
            .flatten()
            .map(Box::as_ref)
    }

    /// Notes that the handler is over, and returns its nest. A call without one cannot get one any more.
    pub(crate) fn close_nest(&self) -> Option<&Nest> {
        if let Some(aside) = self.aside() {
            aside.handler_over();
        }
        match self.nesting.compare_exchange(ALONE, CLOSED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => None,
            Err(_) => self.nest(),
        }
    }

    /// Notes a budget reservation. Relaxed is enough: the phase is locked here, and the call ends from a later phase.
    pub(crate) fn reserve(&self) {
        self.reserved.store(true, Ordering::Relaxed);
    }

    /// Takes the mark of a call that ends: whether it had reserved anything.
    pub(crate) fn settle(&self) -> bool {
        let reserved = self.reserved.load(Ordering::Relaxed);
        if reserved {
            self.reserved.store(false, Ordering::Relaxed);
        }
        reserved
    }

    /// The call's [`Aside`], created if it has none yet.
    pub(crate) fn make_aside(&self) -> &Aside {
        self.aside.get_or_init(Box::default)
    }

    pub(crate) fn aside(&self) -> Option<&Aside> {
        self.aside.get()
    }

    /// Allows a nest for the next attempt. No attempt so far has dispatched anything.
    pub(crate) fn reopen_nest(&self) {
        self.nesting.store(ALONE, Ordering::Release);
    }

    pub(crate) fn phase(&self) -> MutexGuard<'_, Phase> {
        // A phase is always replaced as a whole, so a panic under the lock leaves a valid one.
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &CallId {
        #[cfg(test)]
        super::ids::looks::count();
        &self.call.id
    }

    /// The call's outcome as its caller sees it.
    pub(crate) fn outcome(&self, ending: Ending) -> Outcome {
        let Call { id, name, arguments, .. } = &self.call;
        let call = Call::new(id.clone(), name.clone(), arguments.clone());
        ending.outcome(call, self.routing, self.run)
    }

    /// The outcome, with the call's own parts moved into it; `None` if the call has not ended.
    #[inline]
    pub(crate) fn into_outcome(self) -> Option<Outcome> {
        let Self { call, routing, run, phase, .. } = self;
        match phase.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Phase::Ended(ending) => Some(ending.outcome(call, routing, run)),
            _ => None,
        }
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(*self.phase(), Phase::Ended(_) | Phase::Taken)
    }

    /// A copy of the outcome; `None` if the call has not ended.
    pub(crate) fn peek(&self) -> Option<Outcome> {
        match &*self.phase() {
            Phase::Ended(ending) => Some(self.outcome(ending.clone())),
            _ => None,
        }
    }

    /// Moves the result out; `None` if the call has not ended.
    pub(crate) fn take(&self) -> Option<Outcome> {
        let mut phase = self.phase();
        match std::mem::replace(&mut *phase, Phase::Taken) {
            Phase::Ended(ending) => Some(self.outcome(ending)),
            other => {
                *phase = other;
                None
            }
        }
    }
}
