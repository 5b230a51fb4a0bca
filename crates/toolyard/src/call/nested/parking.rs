//! What a handler holds, lends and gets back while calls of its own are in flight (CC-6, CC-7).
//!
//! ```text
//!             a dispatch        the last one has settled        all is free, it is the top
//!   Held ─────────────────► Parked ───────────────────► Resuming ────────────────────────► Held
//!                             ▲                           │ │ 30 s behind zombies
//!                             └──── another dispatch ─────┘ └─────► Starved (CC-6c)
//!   any of them ── the handler is over ──► Over ── all under it quiescent ──► its entry leaves the lease
//! ```
//!
//! Created when a call dispatches for the first time; most calls never do. Grants that follow from a change are
//! started after its lock is released, because they may resume another handler.

use crate::{
    call::{
        batch::BatchState,
        in_flight::CallRef,
        nested::{
            report::Report,
            state::{Child, HandlerState, OnGrant, Units},
        },
        stop::Stop,
    },
    config::ZOMBIE_WAIT,
};
use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
    task::Waker,
    time::Duration,
};
use tokio::sync::Notify;
use toolyard_admission::{Granted, Held, LeaveResult, Resumed, Ticket, UnitKind};

/// A handler's own calls, and what it holds.
pub(crate) struct Parking {
    held: Held,
    state: Mutex<HandlerState>,
    /// Notifies dispatches that wait for the handler's units.
    changed: Notify,
    /// The attempt's task, woken when its clock stops or starts.
    attempt: AtomicWaker,
}

/// The attempt's clock (V3).
pub(crate) enum Clock {
    /// It runs, and has stood still for this long in all.
    Runs(Duration),
    /// The handler is parked or waits to resume.
    Stands,
    /// The handler cannot resume and its call is to end (CC-6c).
    Starved,
}

impl Parking {
    pub(crate) fn new(held: Held) -> Self {
        let state = HandlerState {
            units: Units::Held,
            children: BTreeMap::new(),
            entered: 0,
            unsettled: 0,
            parked_at: None,
            parked_for: Duration::ZERO,
            stopped: false,
            reported: None,
        };
        Self { held, state: Mutex::new(state), changed: Notify::new(), attempt: AtomicWaker::new() }
    }

    fn state(&self) -> MutexGuard<'_, HandlerState> {
        self.state.lock()
    }

    /// Adds a dispatch; returns its number. The handler keeps its units until the dispatched calls are queued and it
    /// is [parked](Self::park): then these calls, being deeper, get the units before any other waiter (CC-3).
    ///
    /// # Errors
    /// Why the calls are refused, if the handler is over.
    pub(crate) fn enter(&self, call: &CallRef) -> Result<usize, Stop> {
        let admission = &call.batch.session.engine.admission;
        let mut state = self.state();
        let granted = match &mut state.units {
            Units::Starved | Units::Over | Units::Resuming(_, OnGrant::Release) => {
                return Err(Stop::Orphaned);
            }
            Units::Held | Units::Parked => None,
            Units::Resuming(ticket, on_grant) => {
                let (left, granted) = admission.leave(*ticket);
                match left {
                    LeaveResult::Left => state.units = Units::Parked,
                    LeaveResult::AlreadyGranted => *on_grant = OnGrant::Park,
                }
                Some(granted)
            }
        };
        state.unsettled += 1;
        let child = state.entered;
        state.entered += 1;
        state.children.insert(child, Child { batch: None, settled: false, unawaited: false });
        drop(state);
        if let Some(granted) = granted {
            granted.start();
        }
        Ok(child)
    }

    /// Parks the handler if a dispatch of it is in flight.
    ///
    /// # Errors
    /// Why the waiting calls are refused, if too many handlers are parked already.
    pub(crate) fn park(&self, call: &CallRef) -> Result<(), Stop> {
        let engine = &call.batch.session.engine;
        let mut state = self.state();
        if state.unsettled == 0 || !matches!(state.units, Units::Held) {
            return Ok(());
        }
        let session = &call.batch.session;
        let (parked_max, threads_max) = (engine.limits.parked_max, engine.limits.parked_blocking_max);
        if !session.park_in_tree((parked_max / 4).max(1)) {
            return Err(Stop::TooManyParked);
        }
        let Some(granted) = engine.admission.park(self.held, parked_max, threads_max) else {
            session.unpark_in_tree();
            return Err(Stop::TooManyParked);
        };
        state.units = Units::Parked;
        state.parked_at = Some(engine.clock.now());
        drop(state);
        granted.start();
        Ok(())
    }

    /// Attaches the batch of a dispatch, which can be stopped from now on.
    pub(crate) fn attach(&self, call: &CallRef, child: usize, batch: &Arc<BatchState>) {
        let over = {
            let mut state = self.state();
            // The child is gone if every call of the batch was refused, or the handler is over.
            if let Some(child) = state.children.get_mut(&child) {
                child.batch = Some(Arc::downgrade(batch));
            }
            // The dispatch may have been dropped before its batch was attached.
            state.is_over() || state.children.get(&child).is_some_and(|child| child.unawaited)
        };
        fence(Ordering::SeqCst); // as in `BatchState::cancel_running`
        if over || call.at().cancelled().is_some() {
            batch.stop(Stop::Cancelled); // the stop came before it was attached
        }
    }

    /// Notes that a dispatch is no longer awaited; returns whether it has no batch to wait for.
    pub(crate) fn stop_awaiting(&self, child: usize) -> bool {
        let mut state = self.state();
        let Some(child) = state.children.get_mut(&child) else { return false };
        child.unawaited = true;
        !child.settled && child.batch.as_ref().is_none_or(|batch| batch.strong_count() == 0)
    }

    /// Notes that a dispatch was dropped, and cancels its calls.
    pub(crate) fn cancel_child(&self, child: usize) {
        if let Some(child) = self.state().children.get_mut(&child) {
            child.unawaited = true;
        }
        self.changed.notify_waiters(); // calls that are taken in for it no longer wait
        self.stop_child(child, Stop::Cancelled);
    }

    /// Whether the calls of all dropped dispatches have settled (CC-6b).
    pub(crate) fn dropped_have_settled(&self) -> bool {
        self.state().dropped_have_settled()
    }

    /// Waits until [`Self::dropped_have_settled`].
    pub(crate) async fn until_dropped_settled(&self) {
        self.until(HandlerState::dropped_have_settled).await;
    }

    /// Stops the batch of one dispatch.
    pub(crate) fn stop_child(&self, child: usize, why: Stop) {
        let batch = self.state().children.get(&child).and_then(|child| child.batch.as_ref()?.upgrade());
        if let Some(batch) = batch {
            batch.stop(why);
        }
    }

    /// Waits until the handler has its units again. A handler that is over and cannot be dropped stays parked until its
    /// calls have stopped: it must not run on beside a serial one (CC-7).
    pub(crate) async fn until_held(&self) {
        let holds = |state: &HandlerState| matches!(state.units, Units::Held) && state.unsettled == 0;
        let is_over = |state: &HandlerState| matches!(state.units, Units::Over) && state.children.is_empty();
        self.until(|state| holds(state) || is_over(state)).await;
    }

    /// Waits as above after a dispatch that was refused, because the handler is over. If it has stopped, nothing of it
    /// goes on, and whoever else dispatched for it waits for nobody.
    pub(crate) async fn until_held_or_stopped(&self) {
        let has_stopped = self.state().stopped;
        if !has_stopped {
            self.until_held().await;
        }
    }

    /// Waits until [`Self::dropped_have_settled`], unless the calls that wait are stopped meanwhile.
    pub(crate) async fn until_dropped_settled_or(&self, are_stopped: impl Fn() -> bool) {
        loop {
            let changed = self.changed.notified(); // as below
            if are_stopped() || self.dropped_have_settled() {
                return;
            }
            changed.await;
        }
    }

    async fn until(&self, is_so: impl Fn(&HandlerState) -> bool) {
        loop {
            // Made before the check, so that no change is missed in between.
            let changed = self.changed.notified();
            if is_so(&self.state()) {
                return;
            }
            changed.await;
        }
    }

    fn notify(&self) {
        self.changed.notify_waiters();
        self.attempt.wake();
    }

    /// Notes that a dispatch has settled, or that it is quiescent. The last one to settle resumes the handler.
    fn settle(&self, call: &CallRef, child: usize, is_quiescent: bool) {
        let engine = &call.batch.session.engine;
        let mut state = self.state();
        let was_settled = match (state.children.get_mut(&child), is_quiescent) {
            (None, _) => return,
            (Some(_), true) => state.children.remove(&child).is_none_or(|child| child.settled),
            (Some(child), false) => std::mem::replace(&mut child.settled, true),
        };
        if was_settled {
            drop(state);
            return self.changed.notify_waiters(); // a handler that is over may be waiting for its last call to stop
        }
        state.unsettled -= 1;
        let mut granted = None;
        if state.unsettled == 0 && matches!(state.units, Units::Parked) {
            let (resumed, others) = engine.admission.resume(self.held, call.at());
            granted = Some(others);
            match resumed {
                Resumed::Now => state.runs_again(call),
                Resumed::Waiting { ticket, behind_zombies } => {
                    state.units = Units::Resuming(ticket, OnGrant::Run);
                    if behind_zombies {
                        call.starve_later(ticket);
                    }
                }
            }
        } else if state.unsettled == 0
            && let Units::Resuming(_, on_grant @ OnGrant::Park) = &mut state.units
        {
            *on_grant = OnGrant::Run; // its units are on their way already
        }
        drop(state);
        self.notify();
        if let Some(granted) = granted {
            granted.start();
        }
    }

    /// Handles the grant of the units that the handler waited for.
    pub(crate) fn resumed(&self, call: &CallRef) {
        let engine = &call.batch.session.engine;
        let mut state = self.state();
        let mut granted = None;
        if let Units::Resuming(_, on_grant) = state.units {
            match on_grant {
                OnGrant::Run => state.runs_again(call),
                OnGrant::Park => {
                    state.units = Units::Parked;
                    granted = Some(engine.admission.park_again(self.held));
                }
                OnGrant::Release => {
                    state.units = Units::Over;
                    granted = Some(engine.admission.release(self.held.units_only()));
                }
            }
        }
        drop(state);
        self.notify();
        if let Some(granted) = granted {
            granted.start();
        }
    }

    /// Ends a wait to resume that has lasted too long for what only zombies hold (CC-6c).
    pub(crate) fn starve(&self, call: &CallRef) {
        let mut state = self.state();
        let Units::Resuming(ticket, OnGrant::Run) = state.units else { return };
        let admission = &call.batch.session.engine.admission;
        if !admission.is_behind_zombies(ticket) {
            return; // it has resumed meanwhile, and waits anew
        }
        let (left, granted) = admission.leave(ticket);
        if left == LeaveResult::Left {
            state.units = Units::Starved;
        }
        drop(state);
        self.notify();
        // The attempt of a blocking handler may not have been polled since there is one, and not know it.
        call.at().wake();
        granted.start();
    }

    /// The state of the attempt's clock; `waker` is woken when it changes.
    pub(crate) fn clock(&self, waker: &Waker) -> Clock {
        self.attempt.register(waker);
        let state = self.state();
        match state.units {
            Units::Held | Units::Over => Clock::Runs(state.parked_for),
            Units::Parked | Units::Resuming(..) => Clock::Stands,
            Units::Starved => Clock::Starved,
        }
    }

    /// Notes that the handler is over, or was given up and runs on with what `keeps` names; returns what it keeps or
    /// has released. Its calls are told to stop.
    pub(crate) fn handler_over(&self, call: &CallRef, keeps: Option<&dyn Fn(UnitKind) -> bool>) -> Held {
        let admission = &call.batch.session.engine.admission;
        let mut state = self.state();
        let (holds, mut granted) = state.stop_waiting(self.held, call, admission);
        state.stopped = keeps.is_none();
        state.forget_unsent();
        let kept = match keeps {
            None => {
                granted.push(admission.release(holds));
                holds
            }
            Some(keeps) => {
                let (kept, others) = admission.become_zombie(holds, keeps);
                granted.push(others);
                kept
            }
        };
        drop(state);
        self.notify();
        granted.into_iter().for_each(Granted::start);
        self.children().iter().for_each(|batch| batch.stop(Stop::Cancelled));
        kept
    }

    /// Notes that a zombie has stopped, and releases what it kept.
    fn zombie_stopped(&self, call: &CallRef, kept: Held) {
        let mut state = self.state();
        if std::mem::replace(&mut state.stopped, true) {
            return;
        }
        // Under the lock, because whoever sees `stopped` may take its entry off the lease.
        let granted = call.batch.session.engine.admission.zombie_ended(kept);
        drop(state);
        granted.start();
    }

    /// What this call is to report upwards now, if anything.
    fn next_report(&self, call: &CallRef) -> Option<Report> {
        let admission = &call.batch.session.engine.admission;
        let mut state = self.state();
        if !matches!(state.units, Units::Over) || state.reported == Some(Report::Quiescent) {
            return None;
        }
        if state.stopped && state.children.is_empty() {
            let was_listed = state.reported.replace(Report::Quiescent).is_some();
            drop(state);
            admission.quiet(self.held).start();
            return Some(if was_listed { Report::ListedQuiescent } else { Report::Quiescent });
        }
        if state.unsettled == 0 && state.reported.is_none() {
            state.reported = Some(Report::Listed);
            admission.listed(self.held);
            return Some(Report::Listed);
        }
        None
    }

    /// The batches that the handler has dispatched and that are in flight.
    pub(crate) fn children(&self) -> Vec<Arc<BatchState>> {
        self.state().children.values().filter_map(|child| child.batch.as_ref()?.upgrade()).collect()
    }
}

impl CallRef {
    fn parking(&self) -> &Parking {
        self.at().known_parking()
    }

    /// Notes that all calls of a dispatch are quiescent or listed zombies; returns what to report of this call.
    pub(crate) fn child_settled(&self, child: usize) -> Option<Report> {
        self.parking().settle(self, child, false);
        self.parking().next_report(self)
    }

    /// Notes that all calls of a dispatch are quiescent; returns what to report of this call.
    pub(crate) fn child_quiescent(&self, child: usize) -> Option<Report> {
        self.parking().settle(self, child, true);
        self.parking().next_report(self)
    }

    /// What to report of this call, if its handler is over.
    pub(crate) fn next_report(&self) -> Option<Report> {
        self.parking().next_report(self)
    }

    /// Notes that its zombie has stopped; returns what to report of this call.
    pub(crate) fn zombie_stopped(&self, kept: Held) -> Option<Report> {
        self.parking().zombie_stopped(self, kept);
        self.parking().next_report(self)
    }

    /// Ends the call if it still waits to resume, and only zombies hold what it needs, after [`ZOMBIE_WAIT`](crate::config::ZOMBIE_WAIT) (CC-6c).
    fn starve_later(&self, ticket: Ticket) {
        let call = self.at().downgrade();
        self.at().engine().tasks.spawn(async move {
            tokio::time::sleep(ZOMBIE_WAIT).await;
            if let Some(call) = call.upgrade()
                && call.at().engine().admission.is_behind_zombies(ticket)
            {
                call.parking().starve(&call);
            }
        });
    }
}
