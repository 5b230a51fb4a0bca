//! Every move of a handler's units, as drawn in [`parking`](super).

use super::{
    Parking,
    state::{HandlerState, OnGrant, Units},
};
use crate::{
    call::{in_flight::CallRef, stop::Stop},
    config::ZOMBIE_WAIT,
};
use toolyard_admission::{Granted, Held, LeaveResult, Resumed, Ticket, UnitKind};

impl Parking {
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

    /// The last dispatch has settled: the handler wants its units back. Returns whom that starts.
    pub(super) fn resume<'a>(&self, state: &mut HandlerState, call: &'a CallRef) -> Option<Granted<'a>> {
        match &mut state.units {
            Units::Parked => {}
            Units::Resuming(_, on_grant @ OnGrant::Park) => {
                *on_grant = OnGrant::Run; // its units are on their way already
                return None;
            }
            _ => return None,
        }
        let (resumed, granted) = call.batch.session.engine.admission.resume(self.held, call.at());
        match resumed {
            Resumed::Now => state.runs_again(call),
            Resumed::Waiting { ticket, behind_zombies } => {
                state.units = Units::Resuming(ticket, OnGrant::Run);
                if behind_zombies {
                    call.starve_later(ticket);
                }
            }
        }
        Some(granted)
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
    pub(super) fn zombie_stopped(&self, call: &CallRef, kept: Held) {
        let mut state = self.state();
        if std::mem::replace(&mut state.stopped, true) {
            return;
        }
        // Under the lock, because whoever sees `stopped` may take its entry off the lease.
        let granted = call.batch.session.engine.admission.zombie_ended(kept);
        drop(state);
        granted.start();
    }
}

impl CallRef {
    /// Ends the call if it still waits to resume, and only zombies hold what it needs, after [`ZOMBIE_WAIT`] (CC-6c).
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
