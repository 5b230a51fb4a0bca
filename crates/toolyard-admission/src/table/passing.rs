//! Whom a grant would pass: another session's lane that takes a common resource and whose turn was earlier (CC-3).

use super::{
    Table,
    order::{InVain, Rank},
};
use crate::{
    need::Need,
    store::{
        group::Group,
        key::{LaneKey, Who},
        party::PlaceInLine,
        queue::Queue,
        resource::Resource,
    },
};
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

impl<W: PlaceInLine> Table<W> {
    /// Of other sessions' lanes that can start, take a resource that this lane takes and have an earlier turn, the
    /// one with the earliest turn.
    pub(super) fn ahead_of(&mut self, lane: u32) -> Option<u32> {
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
    pub(super) fn turn_at(&self, at: Resource, root: u64) -> Option<u64> {
        let queue = match at {
            Resource::Unit(unit) => self.unit(unit).queue.as_ref(),
            Resource::Lease(lease) => self.leases.get(lease).queue.as_ref(),
        };
        queue?.turn_of(root)
    }
}
