//! Which waiters are blocked only by zombies: abandoned handlers that still run and hold units or leases (V3).

use super::Table;
use crate::{
    ids::Ticket,
    store::{
        key::{LaneKey, Who},
        lane::Lane,
        party::PlaceInLine,
    },
};

impl<W: PlaceInLine> Table<W> {
    /// Whether the waiter with this ticket is still in line and blocked by zombies.
    pub(crate) fn is_behind_zombies(&self, ticket: Ticket) -> bool {
        // In this order because hardly any lane is blocked by zombies, and searching a long lane takes time.
        let lane = self.lanes.get(ticket.lane).filter(|lane| self.is_key_behind_zombies(&lane.key));
        lane.is_some_and(|lane| lane.holds(ticket.number))
    }

    fn is_key_behind_zombies(&self, key: &LaneKey) -> bool {
        match key.who {
            Who::Call { holder, .. } => {
                let lease = key.need.lease().filter(|lease| !self.leases.may_push(*lease, holder));
                let mut is_missing = lease.is_some();
                for unit in key.need.units().map(|unit| self.unit(unit)) {
                    if !unit.is_free(false) {
                        if !unit.is_held_by_zombies() {
                            return false;
                        }
                        is_missing = true;
                    }
                }
                is_missing && lease.is_none_or(|lease| self.leases.is_behind_zombies(lease, holder))
            }
            // One such thing is enough to block a resume (CC-6c): the others will be freed by running calls, this
            // will not.
            Who::Resume { entry } => {
                let is_under =
                    |entry| self.leases.is_behind_zombies(self.leases.entry(entry).lease, Some(entry));
                entry.is_some_and(is_under)
                    || key.need.units().any(|unit| self.unit(unit).is_full_of_zombies())
            }
        }
    }

    /// The waiters with this ticket or an earlier one that are blocked by zombies.
    pub(crate) fn behind_zombies(&self, ticket: u64) -> Vec<W> {
        let is_behind = |lane: &&Lane<W>| self.is_key_behind_zombies(&lane.key);
        self.lanes.iter().filter(is_behind).flat_map(|lane| lane.until(ticket)).collect()
    }
}
