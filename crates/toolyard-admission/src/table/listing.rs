//! Where a lane is listed: at every unit that it needs, on its lease and by its age, under the number of its head.

use super::Table;
use crate::{
    ids::{LeaseId, Ticket},
    lease::EntryState,
    moment::Moment,
    store::{
        group::Sleep,
        key::{LaneKey, Who},
        party::{Arrival, Newcomer, PlaceInLine},
        queue::{Change, Listing, Queue, Turn},
    },
};

impl<W: PlaceInLine> Table<W> {
    /// Adds a waiter to the end of its lane, opening the lane if necessary.
    #[inline]
    pub(super) fn enqueue(
        &mut self,
        (key, lane): (&LaneKey, Option<u32>),
        arrival: Arrival,
        waiter: impl Newcomer<W>,
    ) -> Ticket {
        let lane = match lane {
            Some(lane) => {
                // The head is unchanged, so the lane keeps its place in every list.
                self.lanes.open_one_mut(lane).push(arrival, waiter);
                lane
            }
            None => self.open_lane(*key, arrival, waiter),
        };
        self.trace_change(|| self.waiter_record("queue", key, arrival.lineage, arrival.number));
        Ticket { lane, number: arrival.number }
    }

    #[inline(never)]
    fn open_lane(&mut self, key: LaneKey, head: Arrival, waiter: impl Newcomer<W>) -> u32 {
        if !self.has_waiters() {
            self.aging.begin(head.since);
            self.weighted = false;
        }
        if let Some(only) = self.lanes.only() {
            self.list(only); // it is no longer the only lane
        }
        let groups = self.groups(&key);
        let lane = self.lanes.open(key, groups);
        self.lanes.open_one_mut(lane).push(head, waiter);
        self.list(lane);
        lane
    }

    /// Takes a waiter out of the line (CC-9); `None` when it has been granted or refused. This may unblock others:
    /// see [`Table::take_granted`]. A handler that was waiting to resume is parked again.
    pub(crate) fn cancel(&mut self, ticket: Ticket, now: impl FnOnce() -> Moment) -> Option<W> {
        let lane = self.lanes.get(ticket.lane)?;
        let key = lane.key;
        let waiter = self.lanes.open_one_mut(ticket.lane).cancel(ticket.number)?;
        self.left(&key, 1);
        self.relist(ticket.lane);
        self.trace_change(|| self.waiter_record("cancel", &key, None, ticket.number));
        if let Who::Resume { entry: Some(entry) } = key.who {
            self.set_state(entry, EntryState::Parked);
            self.settle(now);
        } else if self.aging.is_reserved_by(ticket.lane) {
            self.settle(now);
        }
        Some(waiter)
    }

    /// Counts calls that have left their lane.
    pub(super) fn left(&mut self, key: &LaneKey, count: usize) {
        let Who::Call { root, .. } = key.who else { return };
        self.waiting -= count;
        let in_session = self.waiting_by_root.get_mut(&root).expect("its session has a waiter");
        *in_session -= count;
        if *in_session == 0 {
            self.waiting_by_root.remove(&root);
        }
        key.need.units().for_each(|unit| self.unit_mut(unit).queued -= count);
        if let Some(lease) = key.need.lease() {
            self.leases.get_mut(lease).queued -= count;
        }
    }

    /// Updates the place of a lane in every list after its head may have changed, and closes the lane when it is
    /// empty. The only lane may stay listed under its first head: its place is put right when another lane opens.
    pub(super) fn relist(&mut self, lane: u32) {
        if !self.lanes.may_stay_listed(lane) {
            self.list(lane);
        }
    }

    fn list(&mut self, lane: u32) {
        let open = self.lanes.open_one_mut(lane);
        let (key, groups, asleep, (before, now)) = (open.key, open.groups, open.asleep, open.list());
        if before == now {
            return;
        }
        let anew = match key.who {
            Who::Call { root, .. } => self.next_turn(root),
            Who::Resume { .. } => Turn { number: 0, weight: 1 },
        };
        let change = Change { before, now, anew };
        let listing = |reach| {
            let is_listed = Sleep::is_listed(asleep, reach);
            Listing { lane, key: &key, group: groups.at(reach), is_listed }
        };
        for unit in key.need.units() {
            let unit = self.unit_mut(unit);
            Queue::place(&mut unit.queue, listing(unit.reach), change);
        }
        match (key.who, key.need.lease()) {
            (Who::Resume { entry: Some(entry) }, _) => {
                self.leases.entry_mut(entry).resume = now.map(|_| lane);
            }
            (Who::Resume { entry: None }, _) => {}
            (Who::Call { may_not_wait, .. }, Some(lease)) => {
                let listing = listing(self.lease_reach(lease));
                self.relist_on_lease(lease, listing, may_not_wait, change);
            }
            (Who::Call { .. }, None) => self.aging.relist(self.class_of(key.need), lane, change),
        }
        if now.is_none() {
            self.lanes.close(lane);
        }
    }

    fn relist_on_lease(&mut self, id: LeaseId, listing: Listing<'_>, may_not_wait: bool, change: Change) {
        let lease = self.leases.get_mut(id);
        let Listing { lane, key, .. } = listing;
        Queue::place(&mut lease.queue, listing, change);
        if let Some(before) = change.before {
            lease.heads.remove(&(before, lane));
        }
        lease.heads.extend(change.now.map(|now| (now, lane)));
        if let Who::Call { holder: Some(holder), .. } = key.who {
            if let Some(before) = change.before {
                lease.nested.remove(&(holder, before, lane));
            }
            lease.nested.extend(change.now.map(|now| (holder, now, lane)));
        }
        if change.now.is_none() {
            lease.may_not_wait.remove(&lane);
        } else if may_not_wait {
            lease.may_not_wait.insert(lane);
        }
        self.list_eldest(id);
    }
}
