//! The state of a handler's units, and of what it has dispatched.

use crate::call::{batch::BatchState, in_flight::CallRef, nested::report::Report};
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::time::Instant;
use toolyard_admission::{Admission, Granted, Held, LeaveResult, Ticket};

/// The state of a handler's units.
pub(super) enum Units {
    Held,
    Parked,
    /// It waits to get them back; the second field says what happens then.
    Resuming(Ticket, OnGrant),
    /// It has waited long enough for what only zombies hold; its call is to end.
    Starved,
    /// The handler is over.
    Over,
}

/// What happens with units once they are granted: the handler may not wait for them any more by then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OnGrant {
    Run,
    Park,
    Release,
}

/// A dispatch of the handler, kept until all its calls are quiescent.
pub(super) struct Child {
    /// `None` until there is a batch.
    pub(super) batch: Option<Weak<BatchState>>,
    /// All its calls are quiescent or listed zombies.
    pub(super) settled: bool,
    /// The dispatch is no longer awaited.
    pub(super) unawaited: bool,
}

pub(super) struct HandlerState {
    pub(super) units: Units,
    /// By their numbers, which are never reused: a dispatch, and so its number, may outlive its entry here.
    pub(super) children: BTreeMap<usize, Child>,
    /// The number of dispatches so far.
    pub(super) entered: usize,
    /// The number of children that have not settled: while there are any, the handler is parked.
    pub(super) unsettled: usize,
    /// Since when it has been parked, and for how long it was before that.
    pub(super) parked_at: Option<Instant>,
    pub(super) parked_for: Duration,
    /// Whether the handler has stopped; false while it runs on as a zombie.
    pub(super) stopped: bool,
    /// What was last reported upwards.
    pub(super) reported: Option<Report>,
}

impl HandlerState {
    pub(super) fn dropped_have_settled(&self) -> bool {
        !self.children.values().any(|child| child.unawaited && !child.settled)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.units, Units::Over | Units::Resuming(_, OnGrant::Release))
    }

    /// Forgets dispatches without a batch, because the handler is over: they may never be polled again, and a batch
    /// that they still send is stopped before it starts.
    pub(super) fn forget_unsent(&mut self) {
        self.children.retain(|_, child| child.batch.is_some() || child.settled);
        self.unsettled = self.children.values().filter(|child| !child.settled).count();
    }

    pub(super) fn runs_again(&mut self, call: &CallRef) {
        let session = &call.batch.session;
        let now = session.engine.clock.now();
        session.unpark_in_tree();
        self.units = Units::Held;
        self.parked_for += self.parked_at.take().map_or(Duration::ZERO, |at| now - at);
    }

    /// Ends any wait for units, because the handler is over; returns what it holds.
    pub(super) fn stop_waiting<'a>(
        &mut self,
        held: Held,
        call: &CallRef,
        admission: &'a Arc<Admission>,
    ) -> (Held, Vec<Granted<'a>>) {
        let units = std::mem::replace(&mut self.units, Units::Over);
        if matches!(units, Units::Parked | Units::Starved | Units::Resuming(..)) {
            call.batch.session.unpark_in_tree();
        }
        match units {
            Units::Held => return (held, Vec::new()),
            Units::Over => {}
            Units::Parked | Units::Starved => admission.unparked(held),
            Units::Resuming(ticket, _) => {
                let (left, granted) = admission.leave(ticket);
                match left {
                    LeaveResult::Left => admission.unparked(held),
                    LeaveResult::AlreadyGranted => self.units = Units::Resuming(ticket, OnGrant::Release),
                }
                return (held.without_units(), vec![granted]);
            }
        }
        (held.without_units(), Vec::new())
    }
}
