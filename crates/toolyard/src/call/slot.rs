//! One slot per call: where the call is, and in the end its one result (SC-3).

#[cfg(test)]
mod tests;

use crate::{
    call::{
        ending::Ending,
        flight::Flight,
        life::{Life, RunningCall, Started},
        nested::Parking,
        rare::Rare,
    },
    gate,
};
use once_cell::race::OnceBox;
use parking_lot::{Mutex, MutexGuard};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU8, Ordering},
    },
    task::Waker,
};
use toolyard_core::{Call, CallId, Outcome, Routing};

/// A call that the gate let through.
pub(crate) type Cleared = gate::Cleared<Arc<Flight>>;

/// A call of a batch: what it is, what the gate made of it, and where it is.
pub(crate) struct Slot {
    pub(crate) call: Call,
    pub(crate) routing: Routing,
    pub(crate) run: u32,
    /// What the gate let through; `None` for a refused call.
    pub(crate) work: Option<Cleared>,
    /// Whether the engine has a tool of this name: only such names appear in events (OB-4).
    pub(crate) known: bool,
    life: Mutex<Life>,
    rare: OnceBox<Rare>,
    nesting: AtomicU8,
    /// Whether it has reserved budget, which is refunded if it ends without having started (RT-11).
    reserved: AtomicBool,
}

/// The handler has dispatched nothing so far.
const ALONE: u8 = 0;
/// The handler has dispatched calls: its parking releases what it holds.
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
            life: Mutex::new(Life::new()),
            rare: OnceBox::new(),
            nesting: AtomicU8::new(ALONE),
            reserved: AtomicBool::new(false),
        }
    }

    /// The call's parking, created if its handler runs and has none.
    pub(crate) fn open_parking(&self) -> Option<&Parking> {
        let held = self.started()?.held;
        let parking = self.make_rare().parking.get_or_init(|| Box::new(Parking::new(held)));
        let was = self.nesting.compare_exchange(ALONE, NESTED, Ordering::AcqRel, Ordering::Acquire);
        (was != Err(CLOSED)).then_some(parking)
    }

    /// The permits and the deadline of a call whose handler runs.
    pub(crate) fn started(&self) -> Option<Started> {
        self.with_running(|running| running.started)
    }

    /// Registers the task to be woken when a running call is cancelled.
    pub(crate) fn register_waker(&self, task: &Waker) {
        // The previous waker is dropped outside of the lock, because dropping a waker may run any code.
        let _before = self.with_running(|running| running.keep_waker(task));
    }

    /// Takes the waker of the task that drives a running call. The task registers again if it continues to wait.
    pub(crate) fn take_waker(&self) -> Option<Waker> {
        self.with_running(RunningCall::take_waker).flatten()
    }

    fn with_running<T>(&self, look: impl FnOnce(&mut RunningCall) -> T) -> Option<T> {
        let mut life = self.life();
        if let Some(running) = life.running() {
            return Some(look(running));
        }
        if life.is_over() { self.rare()?.with_detached_run(look) } else { None }
    }

    /// The call's parking, if it has one.
    pub(crate) fn parking(&self) -> Option<&Parking> {
        (self.nesting.load(Ordering::Acquire) == NESTED)
            .then(|| self.rare()?.parking.get())
            .flatten()
            .map(Box::as_ref)
    }

    /// Notes that the handler is over, and returns its parking. A call without one cannot get one any more.
    pub(crate) fn close_parking(&self) -> Option<&Parking> {
        if let Some(rare) = self.rare() {
            rare.handler_over();
        }
        match self.nesting.compare_exchange(ALONE, CLOSED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => None,
            Err(_) => self.parking(),
        }
    }

    /// Notes a budget reservation. Relaxed is enough: its life is locked here, and moves on before the call ends.
    pub(crate) fn reserve(&self) {
        self.reserved.store(true, Ordering::Relaxed);
    }

    /// Takes the mark of a call that ends: whether it had reserved anything.
    pub(crate) fn take_reservation(&self) -> bool {
        let reserved = self.reserved.load(Ordering::Relaxed);
        if reserved {
            self.reserved.store(false, Ordering::Relaxed);
        }
        reserved
    }

    /// The flight that the call leads or has joined, if any.
    #[inline]
    pub(crate) fn flight(&self) -> Option<&Arc<Flight>> {
        self.work.as_ref()?.key()?.flight()
    }

    /// The call's [`Rare`], created if it has none yet.
    pub(crate) fn make_rare(&self) -> &Rare {
        self.rare.get_or_init(Box::default)
    }

    pub(crate) fn rare(&self) -> Option<&Rare> {
        self.rare.get()
    }

    /// Allows a parking for the next attempt. No attempt so far has dispatched anything.
    pub(crate) fn reopen_parking(&self) {
        self.nesting.store(ALONE, Ordering::Release);
    }

    pub(crate) fn life(&self) -> MutexGuard<'_, Life> {
        // A phase is always replaced as a whole, so a panic under the lock leaves a valid one.
        self.life.lock()
    }

    pub(crate) fn id(&self) -> &CallId {
        #[cfg(test)]
        super::ids::looks::count();
        &self.call.id
    }

    /// The call's outcome as its caller sees it.
    pub(crate) fn outcome(&self, ending: Ending) -> Outcome {
        let Call { id, name, arguments, .. } = &self.call;
        let call = Call::with_arguments(id.clone(), name.clone(), arguments.clone());
        ending.outcome(call, self.routing, self.run)
    }

    /// The outcome, with the call's own parts moved into it; `None` if the call has not ended.
    #[inline]
    pub(crate) fn into_outcome(self) -> Option<Outcome> {
        let Self { call, routing, run, life, .. } = self;
        let ending = life.into_inner().into_ending()?;
        Some(ending.outcome(call, routing, run))
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.life().is_ended()
    }

    /// A copy of the outcome; `None` if the call has not ended.
    pub(crate) fn peek(&self) -> Option<Outcome> {
        self.life().ending().map(|ending| self.outcome(ending.clone()))
    }

    /// Drops the result, if the call has ended.
    pub(crate) fn drop_result(&self) {
        let ending = self.life().take();
        drop(ending); // outside of the lock
    }

    /// Moves the result out; `None` if the call has not ended.
    pub(crate) fn take(&self) -> Option<Outcome> {
        let ending = self.life().take()?;
        Some(self.outcome(ending))
    }
}
