//! What a handler dispatches: each dispatch is entered, has its batch attached, and may be dropped before its calls end.

use super::{
    Parking,
    state::{Child, OnGrant, Units},
};
use crate::call::{batch::BatchState, in_flight::CallRef, stop::Stop};
use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};
use toolyard_admission::LeaveResult;

impl Parking {
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

    /// Stops the batch of one dispatch.
    pub(crate) fn stop_child(&self, child: usize, why: Stop) {
        let batch = self.state().children.get(&child).and_then(|child| child.batch.as_ref()?.upgrade());
        if let Some(batch) = batch {
            batch.stop(why);
        }
    }

    /// The batches that the handler has dispatched and that are in flight.
    pub(crate) fn children(&self) -> Vec<Arc<BatchState>> {
        self.state().children.values().filter_map(|child| child.batch.as_ref()?.upgrade()).collect()
    }
}
