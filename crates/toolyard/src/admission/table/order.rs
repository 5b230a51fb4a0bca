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
use super::queue::{Group, Place, Queue};
use super::{
    EntryId, EntryState, GrantedWaiter, LeaseId, Moment, Need, PlaceInLine, Resource, Table, UnitId, Who,
};
use smallvec::SmallVec;
use std::cmp::Reverse;

/// The search for lanes that would pass another.
struct Passing {
    /// The session that would be passed.
    root: u64,
    /// What its lane takes and others would have to share.
    taken: Need,
    /// Its turn.
    turn: u64,
    /// The first that would pass it.
    first: Option<Ahead>,
}

/// A lane that would go before another, with what decides it: the turn, and then the rank.
type Ahead = ((u64, Reverse<Rank>), u32);

/// Deeper first, then older.
type Rank = (u8, Reverse<Option<u64>>);

/// Lanes that were looked at in vain.
type InVain = SmallVec<[u32; 4]>;

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

    /// The oldest resume that can start.
    fn next_resume(&mut self) -> Option<u32> {
        let mut oldest = None;
        for at in 0..self.freed.len() {
            let next = self.next_resume_for(self.freed[at]);
            oldest = oldest.into_iter().chain(next).min();
        }
        oldest.map(|(_, lane)| lane)
    }

    fn next_resume_for(&mut self, freed: Resource) -> Option<(u64, u32)> {
        match freed {
            Resource::Unit(unit) => self.next_resume_at(unit),
            Resource::Lease(lease) => {
                let lane = self.leases.entry(self.leases.get(lease).top?).resume?;
                let number = self.lanes.open_one(lane).turn()?;
                self.can_lane_start(lane).then_some((number, lane))
            }
        }
    }

    fn next_resume_at(&mut self, id: UnitId) -> Option<(u64, u32)> {
        let unit = self.unit(id);
        let queue = unit.queue.as_ref().filter(|queue| queue.has_resumes() && unit.has_room(false))?;
        let reach = unit.reach;
        let (mut oldest, mut in_vain) = (None, InVain::new());
        for (need, lanes) in queue.resumes() {
            self.count_look();
            if !need.units().all(|unit| self.unit(unit).has_room(false)) {
                continue;
            }
            for next in lanes {
                if self.can_lane_start(next.1) {
                    oldest = oldest.into_iter().chain([*next]).min();
                    break;
                }
                in_vain.push(next.1);
            }
        }
        in_vain.into_iter().for_each(|lane| self.put_to_sleep(lane, reach));
        oldest
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
            let freed = *self.freed.front()?;
            match self.first_for(freed) {
                Some(lane) => break lane,
                None => {
                    self.freed.pop_front();
                    self.wake_at(freed);
                }
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
    fn deepest(&mut self, lane: u32) -> u32 {
        let Some(root) = self.root_of(lane) else { return lane };
        let mut deepest = lane;
        for at in 0..self.freed.len() {
            let freed = self.freed[at];
            if self.turn_at(freed, root).is_none() {
                continue;
            }
            if let Some(other) = self.first_for(freed)
                && self.root_of(other) == Some(root)
                && self.rank(other) > self.rank(deepest)
            {
                deepest = other;
            }
        }
        deepest
    }

    /// Of other sessions' lanes that can start, take a resource that this lane takes and have an earlier turn, the
    /// one with the earliest turn.
    fn ahead_of(&mut self, lane: u32) -> Option<u32> {
        let (root, need) = (self.root_of(lane)?, self.lanes.open_one(lane).key.need);
        // Of the waiters for a lease that is not empty, only calls of one session could push.
        let lease = need.lease().filter(|lease| self.leases.get(*lease).top.is_none());
        let taken = need.with_lease(lease);
        let mut ahead = Passing { root, taken, turn: self.turn_of(lane), first: None };
        taken.units().for_each(|unit| self.listed_ahead(Resource::Unit(unit), &mut ahead));
        lease.into_iter().for_each(|lease| self.listed_ahead(Resource::Lease(lease), &mut ahead));
        for at in 0..self.freed.len() {
            self.asleep_ahead(self.freed[at], &mut ahead);
        }
        ahead.first.map(|(_, lane)| lane)
    }

    /// Looks for lanes that would pass among those listed at `at`, in the order of their sessions' turns there.
    fn listed_ahead(&mut self, at: Resource, ahead: &mut Passing) {
        let Some(queue) = self.queue_of(at) else { return };
        let mut in_vain = InVain::new();
        for (group, ring) in queue.rings().filter(|(group, _)| self.is_ready(group)) {
            for (turn, root) in ring.range(..ahead.turn) {
                if ahead.first.is_some_and(|((first, _), _)| first < *turn) {
                    break; // nobody's turn is earlier than here
                }
                if *root != ahead.root {
                    self.lanes_ahead(queue, (*root, group), ahead, &mut in_vain);
                }
            }
        }
        let reach = self.reach(at);
        in_vain.into_iter().for_each(|lane| self.put_to_sleep(lane, reach));
    }

    /// Looks for lanes that would pass among those asleep at something freed: they are listed nowhere further out.
    fn asleep_ahead(&mut self, at: Resource, ahead: &mut Passing) {
        let Some(queue) = self.queue_of(at).filter(|queue| !queue.asleep.is_empty()) else { return };
        let mut in_vain = InVain::new();
        for (group, ring) in queue.rings().filter(|(group, _)| self.is_ready(group)) {
            let passed = ahead.root;
            for root in ring.values().filter(|root| **root != passed) {
                self.lanes_ahead(queue, (*root, group), ahead, &mut in_vain);
            }
        }
        let reach = self.reach(at);
        in_vain.into_iter().for_each(|lane| self.put_to_sleep(lane, reach));
    }

    fn lanes_ahead(
        &self,
        queue: &Queue,
        (root, group): (u64, &Group),
        ahead: &mut Passing,
        in_vain: &mut InVain,
    ) {
        let earliest = self.turn_for(root, group.need);
        if earliest >= ahead.turn {
            return; // what the group has in common comes too late already
        }
        for (_, _, lane) in queue.lanes_of(root, group) {
            let need = self.lanes.open_one(lane).key.need;
            if !need.shares_with(ahead.taken) {
                continue;
            }
            if !self.can_lane_start(lane) {
                in_vain.push(lane);
                continue;
            }
            let turn = self.turn_for(root, need);
            if turn < ahead.turn {
                let this = ((turn, Reverse(self.rank(lane))), lane);
                ahead.first = ahead.first.into_iter().chain([this]).min();
            }
            if turn == earliest {
                return; // those behind it have neither an earlier turn nor a higher rank
            }
        }
    }

    /// The turn of a call: the latest of its session's turns at the resources it takes. A grant puts the session
    /// behind all others, so a session goes before a call that could start no more often than its weight at each
    /// resource they share.
    fn turn_of(&self, lane: u32) -> u64 {
        let LaneKey { need, who: Who::Call { root, .. } } = self.lanes.open_one(lane).key else { return 0 };
        self.turn_for(root, need)
    }

    fn turn_for(&self, root: u64, need: Need) -> u64 {
        let units = need.units().filter_map(|unit| self.turn_at(Resource::Unit(unit), root));
        let lease = need.lease().and_then(|lease| self.turn_at(Resource::Lease(lease), root));
        units.chain(lease).max().unwrap_or(0)
    }

    /// The turn of a session at this resource, if it waits there.
    fn turn_at(&self, at: Resource, root: u64) -> Option<u64> {
        let queue = match at {
            Resource::Unit(unit) => self.unit(unit).queue.as_ref(),
            Resource::Lease(lease) => self.leases.get(lease).queue.as_ref(),
        };
        queue?.turn_of(root)
    }

    fn root_of(&self, lane: u32) -> Option<u64> {
        match self.lanes.open_one(lane).key.who {
            Who::Call { root, .. } => Some(root),
            Who::Resume { .. } => None,
        }
    }

    fn rank(&self, lane: u32) -> Rank {
        let lane = self.lanes.open_one(lane);
        let depth = match lane.key.who {
            Who::Call { depth, .. } => depth,
            Who::Resume { .. } => u8::MAX,
        };
        (depth, Reverse(lane.turn()))
    }

    /// The first lane in service order that needs this and can start: of those listed here, and of those asleep at
    /// something that was freed as well.
    fn first_for(&mut self, freed: Resource) -> Option<u32> {
        let mut first = self.first_listed(freed, None);
        let reach = self.reach(freed);
        for at in 0..self.freed.len() {
            let other = self.freed[at];
            if self.reach(other) > reach && self.has_sleepers(other) {
                let asleep = self.first_listed(other, Some(freed));
                first = first.into_iter().chain(asleep).min();
            }
        }
        first.map(|(_, (_, _, lane))| lane)
    }

    /// Of the lanes listed at `at`, the one that can start and is first in the service order of `of`, which it needs.
    /// `None`: of `at` itself.
    fn first_listed(&mut self, at: Resource, of: Option<Resource>) -> Option<(u64, Place)> {
        let queue = self.queue_of(at)?;
        let (mut first, mut in_vain) = (None::<(u64, Place)>, InVain::new());
        for (group, ring) in queue.rings().filter(|(group, _)| self.is_ready(group)) {
            let listed = ring.iter().flat_map(|(turn, root)| {
                queue.lanes_of(*root, group).map(move |place| (*turn, *root, place))
            });
            for (turn, root, place) in listed {
                if of.is_some_and(|of| !self.needs(place.2, of)) {
                    continue;
                }
                if !self.can_lane_start(place.2) {
                    in_vain.push(place.2);
                    continue;
                }
                let turn = of.map_or(Some(turn), |of| self.turn_at(of, root)).unwrap_or(turn);
                first = first.into_iter().chain([(turn, place)]).min();
                break;
            }
        }
        let reach = self.reach(at);
        in_vain.into_iter().for_each(|lane| self.put_to_sleep(lane, reach));
        first
    }

    fn needs(&self, lane: u32, resource: Resource) -> bool {
        let need = self.lanes.open_one(lane).key.need;
        match resource {
            Resource::Unit(unit) => need.has(unit),
            Resource::Lease(lease) => need.lease() == Some(lease),
        }
    }

    /// Whether nothing is missing that all lanes of a group need.
    fn is_ready(&self, group: &Group) -> bool {
        let who = Who::Call { root: 0, depth: 0, holder: group.holder, may_not_wait: false };
        self.count_look();
        self.can_start(&LaneKey { need: group.need, who }, None)
    }

    fn has_sleepers(&self, at: Resource) -> bool {
        let queue = match at {
            Resource::Unit(unit) => self.unit(unit).queue.as_ref(),
            Resource::Lease(lease) => self.leases.get(lease).queue.as_ref(),
        };
        queue.is_some_and(|queue| !queue.asleep.is_empty())
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

    /// Counts that a lane or a group is looked at.
    fn count_look(&self) {
        #[cfg(test)]
        self.looks.set(self.looks.get() + 1);
    }

    fn can_lane_start(&self, lane: u32) -> bool {
        self.count_look();
        self.can_start(&self.lanes.open_one(lane).key, Some(lane))
    }

    /// Whether a waiter with this key can start now. `lane` is its lane, if it is already waiting.
    pub(super) fn can_start(&self, key: &LaneKey, lane: Option<u32>) -> bool {
        match key.who {
            Who::Resume { entry } => {
                let is_top = |entry| self.leases.get(self.leases.entry(entry).lease).top == Some(entry);
                entry.is_none_or(is_top) && key.need.units().all(|unit| self.unit(unit).has_room(false))
            }
            Who::Call { holder, .. } => {
                let may_push = |lease| self.may_take_lease(lease, holder, lane);
                let is_free = |unit: UnitId| self.unit(unit).is_free(self.aging.holds_unit(unit, lane));
                key.need.units().all(is_free) && key.need.lease().is_none_or(may_push)
            }
        }
    }

    /// Whether a call under `holder` may push onto this lease, which is neither paused nor held back.
    pub(super) fn may_take_lease(&self, lease: LeaseId, holder: Option<EntryId>, lane: Option<u32>) -> bool {
        !self.is_serial_paused()
            && !self.aging.holds_lease(lease, lane)
            && self.leases.may_push(lease, holder)
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
