//! Large changes are settled in slices (CC-3), so that one operator's `resize` holds up nobody else.
//!
//! ```text
//!   resize_class ──► backlog: every unit of the class that has waiters
//!   settle_slice     the next few of them, and at most as many grants     ─┐
//!   ...              other calls are admitted and released in between      │ until the backlog is empty
//!   settle_slice                                                          ─┘
//! ```
//!
//! While a resource is in the backlog, a call that needs it waits even if it could start, a newcomer as well as one that a
//! release in between would let go: those who may be next have yet to be looked at. Sessions take their turns among the
//! resources of one slice. After the last slice, no lane has a head that could start.

use super::Table;
use crate::{
    moment::Moment,
    need::Need,
    store::{party::PlaceInLine, resource::Resource},
};

impl<W: PlaceInLine> Table<W> {
    /// Whether one of these resources is still to be looked at.
    pub(super) fn is_owed(&self, need: Need) -> bool {
        let owed = |resource| self.backlog.has(resource);
        !self.backlog.is_empty()
            && self.has_waiters()
            && (need.units().any(|unit| owed(Resource::Unit(unit)))
                || need.lease().is_some_and(|lease| owed(Resource::Lease(lease))))
    }

    /// Settles the next slice of the backlog. Returns whether there is more.
    pub(crate) fn settle_slice(&mut self, now: impl FnOnce() -> Moment) -> bool {
        for _ in 0..self.backlog.slice {
            let Some(next) = self.backlog.pop() else { break };
            if self.is_open(next) {
                self.freed.push_back(next);
            }
        }
        if !self.freed.is_empty() {
            self.settle(now);
        }
        self.backlog.is_new = false;
        !self.backlog.is_empty()
    }

    /// Whether the last change has put off something, for [`Table::settle_slice`]. Asking forgets it.
    pub(crate) fn take_owes(&mut self) -> bool {
        std::mem::take(&mut self.backlog.is_new) && !self.backlog.is_empty()
    }

    /// Leaves what has been freed to a later slice.
    pub(super) fn put_off(&mut self) {
        while let Some(freed) = self.freed.pop_back() {
            self.backlog.put_back(freed);
        }
        self.backlog.is_new = true;
    }

    /// Whether a resource has not been closed since it was freed.
    fn is_open(&self, resource: Resource) -> bool {
        match resource {
            Resource::Unit(unit) => self.kind(unit).is_some(),
            Resource::Lease(lease) => self.leases.is_open(lease),
        }
    }
}
