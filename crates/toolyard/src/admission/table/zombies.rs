//! Who waits for nothing but what handlers hold that were given up and still run (V3).

use super::lane::Lane;
use super::lanes::{LaneKey, Who};
use super::{Table, Ticket, Waits};

impl<W: Waits> Table<W> {
    /// Whether whoever has this ticket still waits, for nothing but what handlers hold that were given up.
    pub(in crate::admission) fn is_behind_zombies(&self, ticket: Ticket) -> bool {
        // In this order: hardly anybody is, and to look for one in a long lane takes its time.
        let lane = self.lanes.get(ticket.lane).filter(|lane| self.is_key_behind_zombies(&lane.key));
        lane.is_some_and(|lane| lane.holds(ticket.number))
    }

    fn is_key_behind_zombies(&self, key: &LaneKey) -> bool {
        match key.who {
            Who::Call { holder, .. } => {
                let lease = key.need.lease.filter(|lease| !self.leases.may_push(*lease, holder));
                let mut missing = key
                    .need
                    .units()
                    .map(|unit| self.unit(unit))
                    .filter(|unit| !unit.is_free(false))
                    .peekable();
                (missing.peek().is_some() || lease.is_some())
                    && missing.all(|unit| unit.is_held_by_zombies())
                    && lease.is_none_or(|lease| self.leases.is_behind_zombies(lease, holder))
            }
            // Of a resume one thing is enough (CC-6c): the others come free by themselves, and this does not.
            Who::Resume { entry } => {
                let is_under =
                    |entry| self.leases.is_behind_zombies(self.leases.entry(entry).lease, Some(entry));
                entry.is_some_and(is_under)
                    || key.need.units().any(|unit| self.unit(unit).is_full_of_zombies())
            }
        }
    }
}

impl<W: Waits> Table<W> {
    /// Who has waited since that ticket or before, for nothing but what handlers hold that were given up.
    pub(in crate::admission) fn behind_zombies(&self, ticket: u64) -> Vec<W> {
        let is_behind = |lane: &&Lane<W>| self.is_key_behind_zombies(&lane.key);
        self.lanes.iter().filter(is_behind).flat_map(|lane| lane.until(ticket)).collect()
    }
}
