//! Grants what can start after a change, one waiter after the other, until no head is left that could.

use super::{GrantedWaiter, Table};
use crate::{
    ids::{EntryId, LeaseId, UnitId},
    lease::EntryState,
    moment::Moment,
    store::{
        key::{LaneKey, Who},
        party::PlaceInLine,
    },
};

impl<W: PlaceInLine> Table<W> {
    /// Grants every waiter that can start after a change, or as many as one slice grants.
    pub(super) fn settle(&mut self, now: impl FnOnce() -> Moment) {
        if !self.has_waiters() {
            self.aging.reserved = None;
            self.freed.clear();
            self.backlog.clear();
            return;
        }
        let now = now();
        let most = self.granted.len() + self.backlog.slice;
        while self.granted.len() < most
            && let Some(lane) = self.next_resume()
        {
            self.grant(lane);
        }
        while self.granted.len() < most {
            self.age(now);
            match self.next_aged().or_else(|| self.next_head()) {
                Some(lane) => self.grant(lane),
                None => return self.wake_all(),
            }
        }
        self.put_off();
    }

    /// Ends a round in which everybody who could start has been granted.
    fn wake_all(&mut self) {
        while let Some(freed) = self.freed.pop_front() {
            self.wake_at(freed);
        }
    }

    /// Whether a call under `holder` may push onto this lease, which is neither paused nor held back.
    pub(super) fn may_take_lease(&self, lease: LeaseId, holder: Option<EntryId>, lane: Option<u32>) -> bool {
        !self.is_serial_paused()
            && !self.aging.holds_lease(lease, lane)
            && self.leases.may_push(lease, holder)
    }

    /// Whether a waiter with this key can start now. `lane` is its lane, if it is already waiting. While a large change is
    /// being settled, no call passes those who may be next and have yet to be looked at.
    pub(super) fn can_start(&self, key: &LaneKey, lane: Option<u32>) -> bool {
        match key.who {
            Who::Resume { entry } => {
                let is_top = |entry| self.leases.get(self.leases.entry(entry).lease).top == Some(entry);
                entry.is_none_or(is_top) && key.need.units().all(|unit| self.unit(unit).has_room(false))
            }
            Who::Call { holder, .. } => {
                let may_push = |lease| self.may_take_lease(lease, holder, lane);
                let is_free = |unit: UnitId| self.unit(unit).is_free(self.aging.holds_unit(unit, lane));
                key.need.units().all(is_free)
                    && key.need.lease().is_none_or(may_push)
                    && !self.is_owed(key.need)
            }
        }
    }

    /// Grants the head of a lane.
    fn grant(&mut self, lane: u32) {
        if self.aging.is_reserved_by(lane) {
            self.aging.reserved = None; // the grant takes what was held back
        }
        let open = self.lanes.open_one_mut(lane);
        let key = open.key;
        let head = open.pop().expect("an open lane has a head");
        self.left(&key, 1);
        self.relist(lane);
        let entry = match key.who {
            Who::Resume { entry } => {
                self.take_again(key.need, entry, head.arrival.number);
                if let Some(entry) = entry {
                    self.set_state(entry, EntryState::Running);
                }
                entry
            }
            Who::Call { root, .. } => {
                self.charge(&key, root);
                self.take(key.need, root, head.arrival.lineage, head.arrival.number)
            }
        };
        self.granted.push(GrantedWaiter { waiter: head.what, need: key.need, entry });
    }

    /// Charges a grant to the session's credit at everything it takes.
    fn charge(&mut self, key: &LaneKey, root: u64) {
        if self.lanes.at_most_one() && self.weights.is_empty() && !self.weighted {
            return; // its credit is one, and no other session waits: it is its turn again
        }
        let next = self.next_turn(root);
        for unit in key.need.units() {
            if let Some(queue) = &mut self.unit_mut(unit).queue {
                queue.charge(root, next);
            }
        }
        if let Some(queue) = key.need.lease().and_then(|lease| self.leases.get_mut(lease).queue.as_mut()) {
            queue.charge(root, next);
        }
    }
}
