//! From ready to started: a call gets its permits at once, is queued for them, or ends.

use super::batch::{BatchState, vanished};
use super::deadline::past_deadline;
use super::progress::Bid;
use super::slot::{Phase, Started};
use super::stop::Stop;
use super::{
    attempt::{Attempt, AttemptStart},
    nested::CallRef,
};
use crate::{
    admission::{Permit, Refusal, Ticket, Waiter},
    gate::{self, Cleared, not_found},
    pool::{PoolLeases, PoolState},
};
use std::{
    sync::{Arc, MutexGuard, Weak},
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::{CallError, ErrorKind, Reason, ToolClass};

/// How long calls wait for zombies: handlers that were given up and still run (V3, CL-3).
pub(crate) const ZOMBIE_WAIT: Duration = Duration::from_secs(30);

/// The inputs of [`BatchState::proceed`] beside the call.
pub(crate) struct Readiness {
    /// Whether the policy in force allows the call, and its tool is still registered.
    pub(crate) allowed: Result<(), Box<CallError>>,
    pub(crate) ready_at: Instant,
    pub(crate) now: Instant,
}

impl BatchState {
    /// Admits a call whose run has begun; returns its attempt if it can start now.
    pub(crate) fn admit(self: &Arc<Self>, index: u32, ready_at: Instant) -> Option<Attempt> {
        let allowed = self.may_still_run(index);
        let mut phase = self.slots[index as usize].phase();
        if !may_proceed(&mut phase) {
            return None;
        }
        self.proceed(phase, index, Readiness { allowed, ready_at, now: ready_at })
    }

    /// Admits a call whose run has begun: it starts, or waits for what it needs.
    pub(crate) fn start_or_wait(self: &Arc<Self>, index: u32, ready_at: Instant) {
        if let Some(attempt) = self.admit(index, ready_at) {
            self.session.engine.runners.run(attempt);
        }
    }

    /// The same for a call that waits for nothing else and has been ready since `ready_at`.
    #[inline(always)]
    pub(crate) fn proceed<'a>(
        self: &'a Arc<Self>,
        mut phase: MutexGuard<'a, Phase>,
        index: u32,
        readiness: Readiness,
    ) -> Option<Attempt> {
        let Readiness { allowed, ready_at, now } = readiness;
        let checked = match allowed {
            Ok(()) => self.recheck(index, now, ready_at),
            refused => refused,
        };
        if let Err(error) = checked {
            self.end_waiting(phase, index, *error);
            return None;
        }
        if self.session.engine.bus.hold().is_on() {
            phase = self.pass_sinks(phase, index, ready_at, now)?;
        }
        if let Some(key) = self.work(index).key() {
            phase = self.lead_or_follow(phase, index, key, ready_at)?;
        }
        if self.session.engine.hooks.is_some() {
            drop(phase);
            self.proceed_after_hook(index, ready_at);
            return None;
        }
        self.lead(phase, index, ready_at, now)
    }

    /// Continues with a call that has just taken over a flight.
    pub(crate) fn proceed_as_leader(self: &Arc<Self>, index: u32, ready_at: Instant) {
        match self.session.engine.hooks.is_some() {
            true => self.proceed_after_hook(index, ready_at),
            false => self.lead_if_waiting(index, ready_at),
        }
    }

    /// Runs the hook that precedes the permits, then continues with the call.
    fn proceed_after_hook(self: &Arc<Self>, index: u32, ready_at: Instant) {
        let (batch, end_on_drop) = (self.clone(), EndOnDrop::new(self, index));
        self.session.engine.tasks.spawn(async move {
            gate::starting(&batch.session.engine, batch.call(index), &batch.caller()).await;
            batch.lead_if_waiting(index, ready_at);
            end_on_drop.disarm();
        });
    }

    /// Continues towards an attempt, if the call has not ended meanwhile.
    fn lead_if_waiting(self: &Arc<Self>, index: u32, ready_at: Instant) {
        let allowed = self.may_still_run(index);
        let phase = self.slots[index as usize].phase();
        if !matches!(*phase, Phase::Waiting) {
            return;
        }
        let now = self.session.engine.clock.now();
        if let Err(error) = allowed.and_then(|()| self.recheck(index, now, ready_at)) {
            return self.end_waiting(phase, index, *error);
        }
        if let Some(attempt) = self.lead(phase, index, ready_at, now) {
            attempt.spawn();
        }
    }

    /// Reserves what a call needs of its budgets, then acquires the rest.
    #[inline(always)]
    fn lead(
        self: &Arc<Self>,
        phase: MutexGuard<'_, Phase>,
        index: u32,
        ready_at: Instant,
        now: Instant,
    ) -> Option<Attempt> {
        match self.reserve(index) {
            Ok(()) => self.acquire(phase, index, Bid::first(ready_at), now),
            Err(error) => {
                self.end_waiting(phase, index, *error);
                None
            }
        }
    }

    /// Checks that a call that was first ready at `first_ready_at` may still proceed towards an attempt.
    #[inline(always)]
    pub(crate) fn recheck(
        &self,
        index: u32,
        now: Instant,
        first_ready_at: Instant,
    ) -> Result<(), Box<CallError>> {
        let entry = &self.work(index).entry;
        let late = || self.deadline_of(index, first_ready_at).is_some_and(|deadline| deadline <= now);
        let takes_calls = self.session.engine.leases.takes_calls(self.work(index).class);
        if self.stopped.get().is_some() || !takes_calls || late() {
            return Err(self.recheck_error(index));
        }
        entry.guard().peek(entry.name(), || now)
    }

    /// The error of a failed [`recheck`](Self::recheck).
    #[cold]
    fn recheck_error(&self, index: u32) -> Box<CallError> {
        if let Some(why) = self.stopped.get() {
            // The stop is still going through the batch and has not reached this call.
            return Box::new(why.error());
        }
        let refused = admissible(&self.session.engine.leases, self.work(index).class);
        Box::new(refused.err().unwrap_or_else(past_deadline))
    }

    /// Checks that a call may still run: the policy allows it, and its tool is still registered. Callers must hold no
    /// lock of the batch: this may ask the policy, and may drop the last handle of one, or of a tool.
    #[inline]
    pub(crate) fn may_still_run(&self, index: u32) -> Result<(), Box<CallError>> {
        match self.cleared(index) {
            Some(work) if self.is_as_cleared(work) => Ok(()),
            work => self.may_run_after_all(index, work),
        }
    }

    #[cold]
    fn may_run_after_all(&self, index: u32, work: Option<&Cleared>) -> Result<(), Box<CallError>> {
        self.still_allowed(index)?;
        work.map_or(Ok(()), |work| self.check_tool(work))
    }

    /// Checks that the call's tool is still registered. No lock may be held, as above.
    fn check_tool(&self, work: &Cleared) -> Result<(), Box<CallError>> {
        if !work.entry.is_retired() {
            return Ok(());
        }
        let rules = self.session.engine.rules.current();
        let message = not_found(work.entry.name(), &rules.tools, &self.session);
        Err(Box::new(CallError::new(ErrorKind::NotFound, message)))
    }

    pub(crate) fn call_at(self: &Arc<Self>, index: u32) -> CallRef {
        CallRef { batch: self.clone(), index }
    }

    /// Ends a call that was queued behind zombies if it still is after [`ZOMBIE_WAIT`] (V3). This does not keep alive
    /// a batch that ends meanwhile.
    pub(crate) fn expire_later(self: &Arc<Self>, index: u32, ticket: Ticket) {
        let batch = Arc::downgrade(self);
        self.session.engine.tasks.spawn(async move {
            tokio::time::sleep(ZOMBIE_WAIT).await;
            if let Some(batch) = batch.upgrade()
                && batch.session.engine.admission.is_behind_zombies(ticket)
            {
                batch.expire(index);
            }
        });
    }
}

impl Waiter for BatchState {
    fn resume(self: Arc<Self>, index: u32) {
        self.resumed(index);
    }

    fn expire(self: Arc<Self>, index: u32) {
        if let Some(nest) = self.slots[index as usize].nest() {
            return nest.starve(&self.call_at(index));
        }
        if matches!(*self.slots[index as usize].phase(), Phase::Queued { .. }) {
            self.end_unstarted(index, behind_a_zombie);
        }
    }

    fn refuse(&self, index: u32) {
        if matches!(*self.slots[index as usize].phase(), Phase::Queued { .. }) {
            self.end_unstarted(index, || refused(Refusal::SerialNesting));
        }
    }

    fn start(self: Arc<Self>, index: u32, permit: Permit<'_>) {
        let granted_at = permit.granted_at();
        let work = self.work(index);
        let (denied, gone) = match self.is_as_cleared(work) {
            true => (None, None),
            false => (self.still_allowed(index).err(), self.check_tool(work).err()),
        };
        let mut phase = self.slots[index as usize].phase();
        let bid = match std::mem::replace(&mut *phase, Phase::Waiting) {
            Phase::Queued { bid, .. } => bid,
            // The call has just ended.
            other => {
                *phase = other;
                drop(phase);
                return drop(permit);
            }
        };
        let deadline = self.deadline_of_bid(index, &bid);
        let late = deadline.is_some_and(|deadline| deadline <= granted_at);
        let refused = match late {
            true => Some(Box::new(past_deadline())),
            false if gone.is_some() => gone,
            false => self.may_not_start(index).or(denied),
        };
        let slots = match refused.map_or_else(|| self.slots(index, granted_at), Err) {
            Ok(slots) => slots,
            Err(error) => {
                self.end_with(phase, index, bid, *error);
                return drop(permit);
            }
        };
        let held = permit.hand_over();
        *phase = Phase::Started(Started { held, deadline }.into());
        drop(phase);
        let start = AttemptStart { held, slots, bid, granted_at };
        Attempt::new(CallRef { batch: self, index }, start).spawn();
    }
}

/// Whether a call in this phase may proceed. If its approval is pending, it is marked to proceed once approved.
fn may_proceed(phase: &mut Phase) -> bool {
    match phase {
        Phase::Waiting => true,
        Phase::Asking { run_begun } => {
            *run_begun = true;
            false
        }
        Phase::Following { .. }
        | Phase::Delayed(_)
        | Phase::Queued { .. }
        | Phase::Started(_)
        | Phase::Ended(_)
        | Phase::Taken => false,
    }
}

/// Checks that the pool of a class takes calls.
fn admissible(leases: &PoolLeases, class: ToolClass) -> Result<(), CallError> {
    if leases.takes_calls(class) {
        return Ok(());
    }
    Err(match leases.get(class).state {
        PoolState::Failed => CallError::new(ErrorKind::Internal, format!("the {class} pool has failed")),
        PoolState::Running | PoolState::Paused | PoolState::Draining => Stop::ShuttingDown.error(),
    })
}

/// The error of a call that may not even wait.
pub(crate) fn refused(refusal: Refusal) -> CallError {
    match refusal {
        Refusal::QueueFull { queue_max } => {
            let message = format!("the queue is full: {queue_max} calls are already waiting");
            CallError::new(ErrorKind::Overloaded, message)
        }
        Refusal::SerialNesting => {
            let message =
                "the call needs a serial scope that is in use while a call above it holds another one";
            CallError::new(ErrorKind::SerialNesting, message)
        }
    }
}

/// The error of a call that waits behind zombies (V3, CL-3).
pub(crate) fn behind_a_zombie() -> CallError {
    CallError::new(
        ErrorKind::QueueTimeout,
        "an earlier call was abandoned but is still running and blocks this one",
    )
    .with_reason(Reason::Zombie)
}

/// Ends a call that has not started if the task that is to start it is dropped (SC-3). It holds the batch weakly, so
/// as not to keep alive one that has ended.
pub(crate) struct EndOnDrop {
    batch: Weak<BatchState>,
    index: u32,
    armed: bool,
}

impl EndOnDrop {
    pub(crate) fn new(batch: &Arc<BatchState>, index: u32) -> Self {
        Self { batch: Arc::downgrade(batch), index, armed: true }
    }

    /// The call no longer depends on this task.
    pub(crate) fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if self.armed
            && let Some(batch) = self.batch.upgrade()
        {
            // A withdrawn question drops its task too: then the stop of the batch is the reason.
            let error = || batch.stopped.get().map_or_else(|| vanished(0), |why| why.error());
            batch.end_unstarted(self.index, error);
        }
    }
}
