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

use super::Table;
use crate::{
    ids::UnitId,
    store::{
        group::Group,
        key::{LaneKey, Who},
        party::PlaceInLine,
        queue::{Place, Queue},
        resource::Resource,
    },
};
use smallvec::SmallVec;
use std::cmp::Reverse;

/// Deeper first, then older.
pub(super) type Rank = (u8, Reverse<Option<u64>>);

/// Lanes that were looked at in vain.
pub(super) type InVain = SmallVec<[u32; 4]>;

impl<W: PlaceInLine> Table<W> {
    /// The oldest resume that can start.
    pub(super) fn next_resume(&mut self) -> Option<u32> {
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

    pub(super) fn next_aged(&self) -> Option<u32> {
        let lane = self.aging.reserved?.lane;
        self.can_lane_start(lane).then_some(lane)
    }

    /// The next call to grant among those that need something freed. Freed resources that no waiter can use are
    /// dropped on the way.
    pub(super) fn next_head(&mut self) -> Option<u32> {
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

    pub(super) fn root_of(&self, lane: u32) -> Option<u64> {
        match self.lanes.open_one(lane).key.who {
            Who::Call { root, .. } => Some(root),
            Who::Resume { .. } => None,
        }
    }

    pub(super) fn rank(&self, lane: u32) -> Rank {
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
    pub(super) fn is_ready(&self, group: &Group) -> bool {
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
    pub(super) fn queue_of(&self, freed: Resource) -> Option<&Queue> {
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

    pub(super) fn can_lane_start(&self, lane: u32) -> bool {
        self.count_look();
        self.can_start(&self.lanes.open_one(lane).key, Some(lane))
    }
}
