//! Lanes that sleep: a release looks only at lanes that can go (CC-3).
//!
//! ```text
//!   reach     engine                     tree                     agent
//!             read, an engine's tool     tree cap, a tree's tool  concurrent, an agent's tool, session
//!   lane      {read, search of agent 3}, and agent 3 searches already:
//!             listed at search, asleep there, and not listed at read until search is free
//! ```
//!
//! Every resource reaches either the whole engine, one tree or one agent. In a queue, lanes are grouped by what they
//! need that reaches at least as far, and a group that lacks some of it costs one look (`queue.rs`). If a lane of
//! another group is found to lack something that reaches less far, it is taken off the lists of all that reaches
//! further: the thousand waiters of one agent's tool are looked at when that tool is free, and cost nobody else
//! anything. A lane wakes when what it slept at is still available after its own waiters have been served. Sleep
//! decides only what is looked at, never who is next.

use super::Table;
use crate::{
    ids::{EntryId, LeaseId, UnitId},
    lease::Scope,
    store::{
        group::{Group, Groups, Sleep},
        key::{LaneKey, Who},
        party::PlaceInLine,
        queue::{Listing, Queue},
        resource::Resource,
    },
    unit::Reach,
};

impl<W: PlaceInLine> Table<W> {
    pub(super) fn reach(&self, resource: Resource) -> Reach {
        match resource {
            Resource::Unit(unit) => self.unit(unit).reach,
            Resource::Lease(lease) => self.lease_reach(lease),
        }
    }

    pub(super) fn lease_reach(&self, lease: LeaseId) -> Reach {
        match self.leases.get(lease).scope {
            Scope::Tree => Reach::Tree,
            Scope::Named(_) => Reach::Engine,
        }
    }

    /// The groups of a lane.
    pub(super) fn groups(&self, key: &LaneKey) -> Groups {
        let holder = match key.who {
            Who::Call { holder, .. } => holder,
            Who::Resume { .. } => None,
        };
        Groups(Reach::ALL.map(|reach| {
            let is_call = matches!(key.who, Who::Call { .. });
            let lease = key.need.lease().filter(|lease| is_call && self.lease_reach(*lease) <= reach);
            let units = key.need.only(|unit| self.unit(unit).reach <= reach);
            Group { need: units.with_lease(lease), holder: lease.and(holder) }
        }))
    }

    /// Puts a lane to sleep at something it lacks that reaches less far than `found_at`, where it was looked at. A
    /// handler that waits to be the top of a lease which reaches further stays listed.
    pub(super) fn put_to_sleep(&mut self, lane: u32, found_at: Reach) {
        let key = self.lanes.open_one(lane).key;
        let Some(sleep) = self.deepest_lack(&key, lane).filter(|sleep| sleep.reach > found_at) else {
            return;
        };
        let before = self.lanes.open_one_mut(lane).asleep.replace(sleep);
        if let Some(before) = before {
            self.unlist_sleeper(before.at, lane);
        }
        self.change_lists(lane, &key, |reach| Sleep::is_listed(before, reach), |reach| reach >= sleep.reach);
        let queue = match sleep.at {
            Resource::Unit(unit) => &mut self.unit_mut(unit).queue,
            Resource::Lease(lease) => &mut self.leases.get_mut(lease).queue,
        };
        // A handler that waits to resume is found through its entry on the lease.
        if let Some(queue) = queue
            && (matches!(key.who, Who::Call { .. }) || matches!(sleep.at, Resource::Unit(_)))
        {
            queue.asleep.insert(lane);
        }
    }

    /// Of what a lane lacks, that which reaches least far.
    fn deepest_lack(&self, key: &LaneKey, lane: u32) -> Option<Sleep> {
        let lacks = self.lacks(key, lane).map(|at| Sleep { at, reach: self.reach(at) });
        lacks.max_by_key(|sleep| sleep.reach)
    }

    /// What a lane lacks now.
    pub(super) fn lacks(&self, key: &LaneKey, lane: u32) -> impl Iterator<Item = Resource> {
        let (who, need) = (key.who, key.need);
        let lacks_unit = move |unit: &UnitId| match who {
            Who::Call { .. } => !self.unit(*unit).is_free(self.aging.holds_unit(*unit, Some(lane))),
            Who::Resume { .. } => !self.unit(*unit).has_room(false),
        };
        let lease = match who {
            Who::Call { holder, .. } => {
                need.lease().filter(|lease| !self.may_take_lease(*lease, holder, Some(lane)))
            }
            Who::Resume { entry } => entry.and_then(|entry| self.not_on_top(entry)),
        };
        need.units().filter(lacks_unit).map(Resource::Unit).chain(lease.map(Resource::Lease))
    }

    /// The lease of an entry that is not its top.
    fn not_on_top(&self, entry: EntryId) -> Option<LeaseId> {
        let lease = self.leases.entry(entry).lease;
        (self.leases.get(lease).top != Some(entry)).then_some(lease)
    }

    fn unlist_sleeper(&mut self, at: Resource, lane: u32) {
        let queue = match at {
            Resource::Unit(unit) => &mut self.unit_mut(unit).queue,
            Resource::Lease(lease) => &mut self.leases.get_mut(lease).queue,
        };
        if let Some(queue) = queue {
            queue.asleep.remove(&lane);
        }
    }

    /// Wakes the lanes that sleep at this, if it is available now.
    pub(super) fn wake_at(&mut self, freed: Resource) {
        let asleep = match freed {
            Resource::Unit(unit) => {
                let unit = self.unit_mut(unit);
                let has_room = unit.has_room(false);
                let queue = unit.queue.as_mut().filter(|queue| has_room && !queue.asleep.is_empty());
                queue.map(|queue| std::mem::take(&mut queue.asleep))
            }
            Resource::Lease(lease) => {
                self.wake_top(lease);
                let lent = self.leases.is_empty_or_lent(lease);
                let queue = self.leases.get_mut(lease).queue.as_mut();
                queue.filter(|_| lent).map(|queue| std::mem::take(&mut queue.asleep))
            }
        };
        if let Some(asleep) = asleep {
            asleep.into_iter().for_each(|lane| self.wake(lane));
        }
    }

    /// Wakes the handler that waits to resume as the top of this lease.
    fn wake_top(&mut self, lease: LeaseId) {
        let top = self.leases.get(lease).top;
        if let Some(lane) = top.and_then(|top| self.leases.entry(top).resume) {
            let sleep = self.lanes.open_one(lane).asleep;
            if sleep.is_some_and(|sleep| sleep.at == Resource::Lease(lease)) {
                self.wake(lane);
            }
        }
    }

    fn wake(&mut self, lane: u32) {
        let open = self.lanes.open_one_mut(lane);
        let (key, before) = (open.key, open.asleep.take());
        self.change_lists(lane, &key, |reach| Sleep::is_listed(before, reach), |_| true);
    }

    /// Lists a lane, or takes it off the list, wherever `before` and `now` differ.
    fn change_lists(
        &mut self,
        lane: u32,
        key: &LaneKey,
        before: impl Fn(Reach) -> bool,
        now: impl Fn(Reach) -> bool,
    ) {
        let open = self.lanes.open_one(lane);
        let (groups, number) = (open.groups, open.listed());
        let change = |queue: &mut Option<Box<Queue>>, reach: Reach| {
            let (before, now) = (before(reach), now(reach));
            if let Some(queue) = queue.as_mut().filter(|_| before != now) {
                let listing = Listing { lane, key, group: groups.at(reach), is_listed: now };
                queue.list(listing, number.filter(|_| before), number.filter(|_| now));
            }
        };
        for unit in key.need.units() {
            let unit = self.unit_mut(unit);
            change(&mut unit.queue, unit.reach);
        }
        if let (Who::Call { .. }, Some(lease)) = (key.who, key.need.lease()) {
            let reach = self.lease_reach(lease);
            change(&mut self.leases.get_mut(lease).queue, reach);
        }
    }
}
