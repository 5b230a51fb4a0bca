//! The life of a call in the table, from its grant to quiescence: what its handler holds, lends and releases.
//!
//! ```text
//!   granted ─► Running ─► release ─► Stopped ─► quiet            finish: both at once
//!                │  ▲                   ▲
//!            park│  │resume             │zombie_ended
//!                ▼  │                   │
//!          Parked ─► Resuming        Zombie ◄─ become_zombie
//! ```
//!
//! The states are those of a lease entry. A handler without an entry has no state but takes the same steps.

use super::{Resumed, Table, trace_record::TraceRecord};
use crate::{
    ids::{EntryId, UnitId},
    lease::EntryState,
    moment::Moment,
    need::Need,
    store::{
        key::{LaneKey, Who},
        party::{Arrival, Newcomer, PlaceInLine},
        resource::Resource,
    },
};

impl<W: PlaceInLine> Table<W> {
    /// Parks a handler that awaits calls of its own: releases its units and lends its lease to those calls (CC-6).
    pub(crate) fn park(&mut self, need: Need, entry: Option<EntryId>, now: impl FnOnce() -> Moment) {
        self.give_back(need);
        self.trace_change(|| TraceRecord::of("park", need, entry));
        self.set_states(entry, EntryState::Parked);
        self.settle(now);
    }

    /// Resumes a parked handler: takes its units again; if it has a lease entry, only as the top of the stack. A
    /// resume goes before all calls, and neither a pause nor a queue bound holds it back: the handler is already
    /// running, and what it holds and lends stays unavailable while it waits. The caller bounds how many are parked.
    /// If the handler is dropped while it waits, [`Table::cancel`] takes it out.
    pub(crate) fn resume(
        &mut self,
        need: Need,
        entry: Option<EntryId>,
        now: impl FnOnce() -> Moment,
        waiter: impl Newcomer<W>,
    ) -> Resumed {
        let key = LaneKey { need, who: Who::Resume { entry } };
        if self.can_start(&key, None) && !self.is_owed(need) {
            self.take_again(need, entry, 0);
            self.set_states(entry, EntryState::Running);
            self.settle(now);
            return Resumed::Now;
        }
        let now = now();
        self.set_states(entry, EntryState::Resuming);
        let arrival = Arrival { number: self.next_ticket(), since: now, lineage: None };
        let lane = self.lanes.find(&key);
        let ticket = self.enqueue((&key, lane), arrival, waiter);
        self.settle(|| now);
        Resumed::Waiting(ticket)
    }

    /// Notes that a handler has stopped while calls under it may still run: releases its units and lends its lease to
    /// those calls. For a handler that was parked, `need` is empty.
    pub(crate) fn release(&mut self, need: Need, entry: Option<EntryId>, now: impl FnOnce() -> Moment) {
        self.stop("release", need, entry);
        self.settle(now);
    }

    fn stop(&mut self, what: &'static str, need: Need, entry: Option<EntryId>) {
        self.give_back(need);
        self.trace_change(|| TraceRecord::of(what, need, entry));
        self.set_states(entry, EntryState::Stopped);
    }

    /// Takes a quiescent call off its lease, from any position (CC-7). No call under it may name its entry any more.
    pub(crate) fn quiet(&mut self, entry: EntryId, now: impl FnOnce() -> Moment) {
        self.leave_lease(entry);
        self.settle(now);
    }

    /// Ends a call that has nothing under it: [`Table::release`] and [`Table::quiet`] in one step.
    pub(crate) fn finish(&mut self, need: Need, entry: Option<EntryId>, now: impl FnOnce() -> Moment) {
        self.give_back(need);
        self.trace_change(|| TraceRecord::of("release", need, entry));
        if let Some(entry) = entry {
            self.leave_lease(entry);
        }
        self.settle(now);
    }

    /// Turns a call into a zombie: its abandoned handler keeps holding `kept` and its lease (SC-6).
    pub(crate) fn become_zombie(
        &mut self,
        kept: Need,
        freed: Need,
        entry: Option<EntryId>,
        now: impl FnOnce() -> Moment,
    ) {
        kept.units().for_each(|unit| self.unit_mut(unit).zombies += 1);
        self.give_back(freed);
        self.trace_change(|| TraceRecord::of("zombie", freed, entry));
        self.set_states(entry, EntryState::Zombie);
        self.settle(now);
    }

    /// Notes that a zombie's handler has stopped.
    pub(crate) fn zombie_ended(&mut self, kept: Need, entry: Option<EntryId>, now: impl FnOnce() -> Moment) {
        kept.units().for_each(|unit| self.unit_mut(unit).zombies -= 1);
        self.stop("zombie_end", kept, entry);
        self.settle(now);
    }

    /// Notes that from now on only zombies are left under this entry, each of them listed (V2).
    pub(crate) fn listed(&mut self, entry: EntryId) {
        self.leases.entry_mut(entry).listed = true;
    }

    /// Takes the units again that a parked handler released.
    pub(super) fn take_again(&mut self, need: Need, entry: Option<EntryId>, ticket: u64) {
        need.units().for_each(|unit| self.unit_mut(unit).in_use += 1);
        self.trace_change(|| TraceRecord { ticket, ..TraceRecord::of("resume", need, entry) });
    }

    fn give_back(&mut self, need: Need) {
        need.units().for_each(|unit| self.give_back_unit(unit));
    }

    fn give_back_unit(&mut self, id: UnitId) {
        let unit = self.unit_mut(id);
        debug_assert!(unit.in_use > 0, "more is given back than was taken");
        unit.in_use -= 1;
        if unit.queue.is_some() {
            self.freed.push_back(Resource::Unit(id));
        }
    }

    fn set_states(&mut self, entry: Option<EntryId>, state: EntryState) {
        if let Some(entry) = entry {
            self.set_state(entry, state);
        }
    }

    pub(super) fn set_state(&mut self, id: EntryId, state: EntryState) {
        let entry = self.leases.entry_mut(id);
        entry.state = state;
        let lease = entry.lease;
        if self.leases.get(lease).top == Some(id) {
            self.lease_changed(lease);
            self.freed.push_back(Resource::Lease(lease));
        }
    }

    fn leave_lease(&mut self, entry: EntryId) {
        self.trace_change(|| TraceRecord::of("quiet", Need::default(), Some(entry)));
        let gone = self.leases.remove(entry);
        debug_assert!(gone.resume.is_none(), "a call that waits to resume is not quiescent");
        self.lease_changed(gone.lease);
        self.freed.push_back(Resource::Lease(gone.lease));
    }
}
