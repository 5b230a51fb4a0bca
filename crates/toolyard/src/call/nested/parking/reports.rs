//! What calls under a handler reach, and what its own call reports of it.

use super::{Parking, state::Units};
use crate::call::{in_flight::CallRef, nested::report::Report};
use toolyard_admission::Held;

impl Parking {
    /// Notes that a dispatch has settled, or that it is quiescent. The last one to settle resumes the handler.
    fn settle(&self, call: &CallRef, child: usize, is_quiescent: bool) {
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
        let granted = if state.unsettled == 0 { self.resume(&mut state, call) } else { None };
        drop(state);
        self.notify();
        if let Some(granted) = granted {
            granted.start();
        }
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
}

impl CallRef {
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
}
