//! Which waiter is granted next when something has been freed (CC-3).
//!
//! 1. Handlers that can resume, oldest first. They finish work already begun, so neither a reservation nor a
//!    pause holds them back.
//! 2. The call that has waited too long (`aging.rs`).
//! 3. The root session whose turn it is at what was freed, and of its calls the deepest, then the oldest. A call of
//!    another session goes before it if both take a common resource and that session's turn was earlier.
//!
//! Only freed resources are looked at. Every grant makes resources scarcer for all others, so one pass is enough. The
//! exception is the end of a reservation, which frees what it held back.

use super::lanes::LaneKey;
use super::queue::Queue;
use super::{EntryState, GrantedWaiter, Moment, PlaceInLine, Resource, Table, UnitId, Who};
use std::cmp::Reverse;

impl<W: PlaceInLine> Table<W> {
    /// Grants every waiter that can start after a change.
    pub(super) fn settle(&mut self, now: impl FnOnce() -> Moment) {
        if !self.has_waiters() {
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
            match self.next_aged().or_else(|| self.next_head()) {
                Some(lane) => self.grant(lane),
                None => return self.freed.clear(),
            }
        }
    }

    /// The oldest resume that can start.
    fn next_resume(&self) -> Option<u32> {
        let oldest = self.freed.iter().filter_map(|freed| self.next_resume_for(*freed));
        oldest.min().map(|(_, lane)| lane)
    }

    fn next_resume_for(&self, freed: Resource) -> Option<(u64, u32)> {
        match freed {
            Resource::Unit(unit) => {
                let unit = self.unit(unit);
                let queue = unit.queue.as_ref().filter(|_| unit.has_room(false))?;
                queue.resumes().find(|(_, lane)| self.can_lane_start(*lane))
            }
            Resource::Lease(lease) => {
                let lane = self.leases.entry(self.leases.get(lease).top?).resume?;
                let number = self.lanes.open_one(lane).turn()?;
                self.can_lane_start(lane).then_some((number, lane))
            }
        }
    }

    fn next_aged(&self) -> Option<u32> {
        let lane = self.aging.reserved?.lane;
        self.can_lane_start(lane).then_some(lane)
    }

    /// The next call to grant among those that need something freed. Freed resources that no waiter can use are
    /// dropped on the way.
    fn next_head(&mut self) -> Option<u32> {
        if let Some(only) = self.lanes.only() {
            return self.can_lane_start(only).then_some(only);
        }
        let first = loop {
            match self.first_for(*self.freed.front()?) {
                Some(lane) => break lane,
                None => drop(self.freed.pop_front()),
            }
        };
        let mut next = self.deepest(first);
        while let Some(ahead) = self.ahead_of(next) {
            next = ahead;
        }
        Some(next)
    }

    /// Of the lanes of this lane's session that are first for something freed, the deepest: a tree finishes what it
    /// has begun (CC-3).
    fn deepest(&self, lane: u32) -> u32 {
        let root = self.root_of(lane);
        let others = self.freed.iter().filter_map(|freed| self.first_for(*freed));
        let own = others.filter(|other| self.root_of(*other) == root).chain([lane]);
        own.max_by_key(|lane| self.rank(*lane)).unwrap_or(lane)
    }

    /// Of other sessions' lanes that can start, take a resource that this lane takes and have an earlier turn, the
    /// one with the earliest turn.
    fn ahead_of(&self, lane: u32) -> Option<u32> {
        let (root, need) = (self.root_of(lane), self.lanes.open_one(lane).key.need);
        let turn = self.turn_of(lane);
        // Of the waiters for a lease that is not empty, only calls of one session could push.
        let lease = need.lease.filter(|lease| self.leases.get(*lease).top.is_none());
        let things = need.units().map(Resource::Unit).chain(lease.map(Resource::Lease));
        let before =
            things.filter_map(|thing| self.queue_of(thing)).flat_map(|queue| queue.lanes_before(turn));
        before
            .filter(|other| self.root_of(*other) != root && self.turn_of(*other) < turn)
            .filter(|other| self.can_lane_start(*other))
            .min_by_key(|other| (self.turn_of(*other), Reverse(self.rank(*other))))
    }

    /// The turn of a call: the latest of its session's turns at the resources it takes. A grant puts the session
    /// behind all others, so a session goes before a call that could start no more often than its weight at each
    /// resource they share.
    fn turn_of(&self, lane: u32) -> u64 {
        let LaneKey { need, who: Who::Call { root, .. } } = self.lanes.open_one(lane).key else { return 0 };
        let units = need.units().filter_map(|unit| self.unit(unit).queue.as_ref());
        let lease = need.lease.and_then(|lease| self.leases.get(lease).queue.as_ref());
        units.chain(lease).filter_map(|queue| queue.turn_of(root)).max().unwrap_or(0)
    }

    fn root_of(&self, lane: u32) -> Option<u64> {
        match self.lanes.open_one(lane).key.who {
            Who::Call { root, .. } => Some(root),
            Who::Resume { .. } => None,
        }
    }

    /// Deeper first, then older.
    fn rank(&self, lane: u32) -> (u8, Reverse<Option<u64>>) {
        let lane = self.lanes.open_one(lane);
        let depth = match lane.key.who {
            Who::Call { depth, .. } => depth,
            Who::Resume { .. } => u8::MAX,
        };
        (depth, Reverse(lane.turn()))
    }

    /// The first lane in service order that needs this and can start.
    fn first_for(&self, freed: Resource) -> Option<u32> {
        let queue = self.queue_of(freed)?;
        match freed {
            // Onto a lease that is not empty, only calls of the top entry's own tree could push.
            Resource::Lease(id) if self.leases.get(id).top.is_some() => {
                self.lanes_on_top(id).find(|lane| self.can_lane_start(*lane))
            }
            Resource::Lease(_) | Resource::Unit(_) => queue.lanes().find(|lane| self.can_lane_start(*lane)),
        }
    }

    /// The waiters for this resource, if it is available.
    fn queue_of(&self, freed: Resource) -> Option<&Queue> {
        match freed {
            Resource::Unit(id) => {
                let unit = self.unit(id);
                unit.queue.as_deref().filter(|_| unit.is_free(self.aging.holds_unit(id, None)))
            }
            Resource::Lease(id) => {
                let lease = self.leases.get(id);
                lease.queue.as_deref().filter(|_| !self.aging.holds_lease(id, None))
            }
        }
    }

    fn can_lane_start(&self, lane: u32) -> bool {
        self.can_start(&self.lanes.open_one(lane).key, Some(lane))
    }

    /// Whether a waiter with this key can start now. `lane` is its lane, if it is already waiting.
    pub(super) fn can_start(&self, key: &LaneKey, lane: Option<u32>) -> bool {
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
        if let Some(queue) = key.need.lease.and_then(|lease| self.leases.get_mut(lease).queue.as_mut()) {
            queue.charge(root, next);
        }
    }
}
