//! Who goes next when something has come free (CC-3).
//!
//! 1. Handlers that resume, oldest first, those that can: they finish what was begun, and nobody who waits may
//!    hold them back, no reservation and no pause.
//! 2. The call that has waited too long (`aging.rs`).
//! 3. Of what has come free, one thing after another: those who need it, as its queue has them (`queue.rs`).
//!
//! Only what has come free is looked at. Every grant makes things scarcer for all others, so one pass is enough,
//! but for the end of a reservation: that frees what it held back.

use super::lanes::LaneKey;
use super::{EntryState, Going, Moment, Resource, Table, UnitId, Who};

impl<W> Table<W> {
    /// Grants whoever can go after a change.
    pub(super) fn settle(&mut self, now: impl FnOnce() -> Moment) {
        if !self.wants_time() {
            self.aging.reserved = None;
            self.freed.clear();
            return;
        }
        let now = now();
        while let Some(lane) = self.next_resume() {
            self.grant(lane);
        }
        loop {
            self.age(now);
            let Some(freed) = self.freed.front().copied() else {
                return;
            };
            match self.next_aged().or_else(|| self.next_head(freed)) {
                Some(lane) => self.grant(lane),
                None => drop(self.freed.pop_front()),
            }
        }
    }

    /// The oldest of the resumes that can go.
    fn next_resume(&self) -> Option<u32> {
        let oldest = self.freed.iter().filter_map(|freed| self.next_resume_for(*freed));
        oldest.min().map(|(_, lane)| lane)
    }

    fn next_resume_for(&self, freed: Resource) -> Option<(u64, u32)> {
        match freed {
            Resource::Unit(unit) => {
                let unit = self.unit(unit);
                let queue = unit.queue.as_ref().filter(|_| unit.has_room(false))?;
                queue.resumes().find(|(_, lane)| self.can_lane_go(*lane))
            }
            Resource::Lease(lease) => {
                let lane = self.leases.entry(self.leases.get(lease).top?).resume?;
                let number = self.lanes.open_one(lane).turn()?;
                self.can_lane_go(lane).then_some((number, lane))
            }
        }
    }

    fn next_aged(&self) -> Option<u32> {
        let lane = self.aging.reserved?.lane;
        self.can_lane_go(lane).then_some(lane)
    }

    /// Of those who need this, the first in order who can go.
    fn next_head(&self, freed: Resource) -> Option<u32> {
        match freed {
            Resource::Unit(id) => {
                let unit = self.unit(id);
                let queue = unit.queue.as_ref().filter(|_| unit.is_free(self.aging.holds_unit(id, None)))?;
                queue.lanes().find(|lane| self.can_lane_go(*lane))
            }
            Resource::Lease(id) => {
                let lease = self.leases.get(id);
                let queue = lease.queue.as_ref().filter(|_| !self.aging.holds_lease(id, None))?;
                match lease.top {
                    None => queue.lanes().find(|lane| self.can_lane_go(*lane)),
                    Some(_) => self.lanes_on_top(id).find(|lane| self.can_lane_go(*lane)),
                }
            }
        }
    }

    fn can_lane_go(&self, lane: u32) -> bool {
        self.can_go(&self.lanes.open_one(lane).key, Some(lane))
    }

    /// Whether one with this key can go now. `lane`: its own, if it waits already.
    pub(super) fn can_go(&self, key: &LaneKey, lane: Option<u32>) -> bool {
        match key.who {
            Who::Resume { entry } => {
                let is_top = |entry| self.leases.get(self.leases.entry(entry).lease).top == Some(entry);
                entry.is_none_or(is_top)
                    && (faulty!(PermitHeldWhileNested)
                        || key.need.units().all(|unit| self.unit(unit).has_room(false)))
            }
            Who::Call { holder, .. } => {
                let may_push = |lease| {
                    !self.is_serial_paused()
                        && !self.aging.holds_lease(lease, lane)
                        && self.leases.may_push(lease, holder)
                };
                let is_free = |unit: UnitId| self.unit(unit).is_free(self.aging.holds_unit(unit, lane));
                key.need.units().all(is_free) && key.need.lease.is_none_or(may_push)
            }
        }
    }

    /// Lets the head of a lane go.
    fn grant(&mut self, lane: u32) {
        if self.aging.is_reserved_by(lane) {
            self.aging.reserved = None; // what it held back is what it takes
        }
        let open = self.lanes.open_one_mut(lane);
        let (key, before) = (open.key, open.turn());
        let head = open.pop().expect("an open lane has a head");
        self.left(&key, 1);
        self.relist(lane, before);
        let entry = match key.who {
            Who::Resume { entry } => {
                self.take_again(key.need, entry, head.number);
                if let Some(entry) = entry {
                    self.set_state(entry, EntryState::Running);
                }
                entry
            }
            Who::Call { root, .. } => {
                self.charge(&key, root);
                self.take(key.need, root, head.lineage, head.number)
            }
        };
        self.granted.push(Going { waiter: head.into_what(), need: key.need, entry });
    }

    /// Counts a grant against the session's credit for everything it takes.
    fn charge(&mut self, key: &LaneKey, root: u64) {
        let weight = self.weight(root);
        for unit in key.need.units() {
            if let Some(queue) = &mut self.unit_mut(unit).queue {
                queue.charge(root, weight);
            }
        }
        if let Some(queue) = key.need.lease.and_then(|lease| self.leases.get_mut(lease).queue.as_mut()) {
            queue.charge(root, weight);
        }
    }
}
