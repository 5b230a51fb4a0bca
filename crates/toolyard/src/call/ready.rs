//! From ready to started: a call gets its permits at once, is queued for them, or ends.

use crate::{
    call::{
        attempt::{Attempt, AttemptStart},
        batch::BatchState,
        in_flight::{CallRef, InFlight, WeakCall},
        life::{Life, Started},
        refusals::{Refusal, vanished_error},
        slot::Cleared,
        stop::Stop,
    },
    config::ZOMBIE_WAIT,
    gate::{self, not_found},
    pool::{PoolLeases, PoolState},
};
use futures::{FutureExt, future::BoxFuture};
use parking_lot::MutexGuard;
use std::sync::Arc;
use tokio::time::Instant;
use toolyard_admission::{Asker, Permit, Ticket, Waiter};
use toolyard_core::{CallError, ErrorKind, ToolClass};

/// The inputs of [`BatchState::proceed`] beside the call.
pub(crate) struct Readiness {
    /// Whether the policy in force allows the call, and its tool is still registered.
    pub(crate) allowed: Result<(), Box<CallError>>,
    pub(crate) ready_at: Instant,
    pub(crate) now: Instant,
}

impl BatchState {
    /// Checks that the call's tool is still registered. No lock may be held, as above.
    fn check_tool(&self, work: &Cleared) -> Result<(), Box<CallError>> {
        if !work.entry.is_retired() {
            return Ok(());
        }
        let rules = self.session.engine.rules.current();
        let message = not_found(work.entry.name(), &rules.tools, &self.session);
        Err(Box::new(CallError::new(ErrorKind::NotFound, message)))
    }
}

impl<'a> InFlight<'a> {
    /// Admits a call whose run has begun; returns its attempt if it can start now.
    pub(crate) fn admit(self, ready_at: Instant) -> Option<Attempt> {
        let allowed = self.may_still_run();
        let mut life = self.slot().life();
        if !life.run_begins() {
            return None;
        }
        self.proceed(life, Readiness { allowed, ready_at, now: ready_at })
    }

    /// Admits a call whose run has begun: it starts, or waits for what it needs.
    pub(crate) fn start_or_wait(self, ready_at: Instant) {
        if let Some(attempt) = self.admit(ready_at) {
            self.engine().runners.run(attempt);
        }
    }

    /// The same for a call that waits for nothing else and has been ready since `ready_at`.
    #[inline(always)]
    pub(crate) fn proceed(self, mut life: MutexGuard<'a, Life>, readiness: Readiness) -> Option<Attempt> {
        let Readiness { allowed, ready_at, now } = readiness;
        let checked = match allowed {
            Ok(()) => self.recheck(now, ready_at),
            refused => refused,
        };
        if let Err(error) = checked {
            self.refuse_in(life, *error);
            return None;
        }
        if self.engine().bus.hold().is_on() {
            life = self.pass_sinks(life, ready_at, now)?;
        }
        if let Some(key) = self.work().key() {
            life = self.lead_or_follow(life, key, ready_at)?;
        }
        if self.engine().hooks.is_some() {
            drop(life);
            return self.proceed_after_hook(ready_at);
        }
        self.lead(life, ready_at, now)
    }

    /// Continues with a call that has just taken over a flight.
    pub(crate) fn proceed_as_leader(self, ready_at: Instant) {
        match self.engine().hooks.is_some() {
            true => self.lead_after(self.starting(), ready_at),
            false => self.lead_if_waiting(ready_at).into_iter().for_each(Attempt::spawn),
        }
    }

    /// Runs the hook that precedes the permits, then continues with the call. Most hooks are done at their first poll,
    /// and only one that waits needs a task.
    #[cold]
    fn proceed_after_hook(self, ready_at: Instant) -> Option<Attempt> {
        let mut starting = self.starting();
        // Polled with a waker that does nothing: if it has to wait, its own task polls it again and registers a real one.
        if starting.as_mut().now_or_never().is_some() {
            return self.lead_if_waiting(ready_at);
        }
        self.lead_after(starting, ready_at);
        None
    }

    /// The hook that precedes the permits.
    fn starting(self) -> BoxFuture<'static, ()> {
        let call = self.owned();
        Box::pin(async move {
            let CallRef { batch, .. } = &call;
            gate::starting(&batch.session.engine, &call.at().call_as_run(), &batch.caller()).await;
        })
    }

    /// Continues with the call when its hook is done.
    fn lead_after(self, hook: BoxFuture<'static, ()>, ready_at: Instant) {
        let (call, end_on_drop) = (self.owned(), EndOnDrop::new(self));
        self.engine().tasks.spawn(async move {
            hook.await;
            call.at().lead_if_waiting(ready_at).into_iter().for_each(Attempt::spawn);
            end_on_drop.disarm();
        });
    }

    /// Continues towards an attempt, if the call has not ended meanwhile.
    fn lead_if_waiting(self, ready_at: Instant) -> Option<Attempt> {
        let allowed = self.may_still_run();
        let life = self.slot().life();
        if !life.is_waiting() {
            return None;
        }
        let now = self.engine().clock.now();
        if let Err(error) = allowed.and_then(|()| self.recheck(now, ready_at)) {
            self.refuse_in(life, *error);
            return None;
        }
        self.lead(life, ready_at, now)
    }

    /// Reserves what a call needs of its budgets, then acquires the rest.
    #[inline(always)]
    fn lead(self, life: MutexGuard<'_, Life>, ready_at: Instant, now: Instant) -> Option<Attempt> {
        match self.reserve() {
            Ok(()) => self.acquire(life, self.first_bid(ready_at), now),
            Err(error) => {
                self.refuse_in(life, *error);
                None
            }
        }
    }

    /// Checks that a call that was first ready at `first_ready_at` may still proceed towards an attempt.
    #[inline(always)]
    pub(crate) fn recheck(self, now: Instant, first_ready_at: Instant) -> Result<(), Box<CallError>> {
        let entry = &self.work().entry;
        let late = || self.deadline_of(first_ready_at).is_some_and(|deadline| deadline <= now);
        let takes_calls = self.engine().leases.takes_calls(self.work().class);
        if self.batch.stopped.get().is_some() || !takes_calls || late() {
            return Err(self.recheck_error());
        }
        entry.guard().peek(entry.name(), self.sandbox_breaker(), || now)
    }

    /// The error of a failed [`recheck`](Self::recheck).
    #[cold]
    fn recheck_error(self) -> Box<CallError> {
        if let Some(why) = self.batch.stopped.get() {
            // The stop is still going through the batch and has not reached this call.
            return Box::new(why.error());
        }
        let refused = admissible(&self.engine().leases, self.work().class);
        Box::new(refused.err().unwrap_or_else(|| Refusal::PastDeadline.error()))
    }

    /// Checks that a call may still run: the policy allows it, and its tool is still registered. Callers must hold no
    /// lock of the batch: this may ask the policy, and may drop the last handle of one, or of a tool.
    #[inline]
    pub(crate) fn may_still_run(self) -> Result<(), Box<CallError>> {
        match self.cleared() {
            Some(work) if self.batch.is_as_cleared(work) => Ok(()),
            work => self.may_run_after_all(work),
        }
    }

    #[cold]
    fn may_run_after_all(self, work: Option<&Cleared>) -> Result<(), Box<CallError>> {
        self.still_allowed()?;
        work.map_or(Ok(()), |work| self.batch.check_tool(work))
    }

    /// Ends a call that was queued behind zombies if it still is after [`ZOMBIE_WAIT`](crate::config::ZOMBIE_WAIT) (V3). This does not keep alive
    /// a batch that ends meanwhile.
    pub(crate) fn expire_later(self, ticket: Ticket) {
        let call = self.downgrade();
        self.engine().tasks.spawn(async move {
            tokio::time::sleep(ZOMBIE_WAIT).await;
            if let Some(call) = call.upgrade()
                && call.at().engine().admission.is_behind_zombies(ticket)
            {
                call.batch.expire(call.index);
            }
        });
    }
}

impl Asker for InFlight<'_> {
    type Waiter = BatchState;

    fn address(&self) -> *const BatchState {
        self.batch
    }

    fn index(&self) -> u32 {
        self.index
    }

    fn waiter(&self) -> Arc<BatchState> {
        self.shared_batch()
    }
}

impl Waiter for BatchState {
    fn resume(self: Arc<Self>, index: u32) {
        CallRef { batch: self, index }.resumed();
    }

    fn expire(self: Arc<Self>, index: u32) {
        let call = self.at(index);
        if let Some(parking) = call.slot().parking() {
            return parking.starve(&call.owned());
        }
        if call.slot().life().is_queued() {
            call.refuse(|| Refusal::BehindZombie.error());
        }
    }

    fn refuse(&self, index: u32) {
        let call = self.at(index);
        if call.slot().life().is_queued() {
            call.refuse(|| Refusal::SerialNesting.error());
        }
    }

    fn start(self: Arc<Self>, index: u32, permit: Permit<'_>) {
        let granted_at = permit.granted_at();
        let call = self.at(index);
        let work = call.work();
        let (denied, gone) = match self.is_as_cleared(work) {
            true => (None, None),
            false => (call.still_allowed().err(), self.check_tool(work).err()),
        };
        let mut life = call.slot().life();
        let Some(bid) = life.granted() else {
            // The call has just ended.
            drop(life);
            return drop(permit);
        };
        let deadline = call.deadline_of_bid(&bid);
        let late = deadline.is_some_and(|deadline| deadline <= granted_at);
        let refused = match late {
            true => Some(Refusal::PastDeadline.boxed()),
            false if gone.is_some() => gone,
            false => call.may_not_start().or(denied),
        };
        let slots = match refused.map_or_else(|| call.slots(granted_at), Err) {
            Ok(slots) => slots,
            Err(error) => {
                call.refuse_bid(life, bid, *error);
                return drop(permit);
            }
        };
        let held = permit.hand_over();
        life.starts(Started { held, deadline });
        drop(life);
        let start = AttemptStart { held, slots, bid, granted_at };
        Attempt::new(CallRef { batch: self, index }, start).spawn();
    }
}

/// Checks that the pool of a class takes calls.
fn admissible(leases: &PoolLeases, class: ToolClass) -> Result<(), CallError> {
    if leases.takes_calls(class) {
        return Ok(());
    }
    Err(match leases.get(class).state {
        PoolState::Failed => Refusal::PoolFailed(class).error(),
        PoolState::Running | PoolState::Paused | PoolState::Draining => Stop::ShuttingDown.error(),
    })
}

/// Ends a call that has not started if the task that is to start it is dropped (SC-3). It holds the batch weakly, so
/// as not to keep alive one that has ended.
pub(crate) struct EndOnDrop {
    call: WeakCall,
    armed: bool,
}

impl EndOnDrop {
    pub(crate) fn new(call: InFlight<'_>) -> Self {
        Self { call: call.downgrade(), armed: true }
    }

    /// The call no longer depends on this task.
    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if self.armed
            && let Some(call) = self.call.upgrade()
        {
            // A withdrawn question drops its task too: then the stop of the batch is the reason.
            let error = || call.batch.stopped.get().map_or_else(|| vanished_error(0), |why| why.error());
            call.at().refuse(error);
        }
    }
}
