//! The pure table of units, leases and lanes: grants all of a need, or nothing.
//!
//! ```text
//!   units    read 20/20 used     concurrent(agent 2) 3/10     session(7) 3/8     tool(7, "search") 1/1
//!   leases   tree(1): call 4 running, above call 1, parked    named("db"): empty
//!   lanes    {root 7, depth 0: read}            call, call, call        first in, first out
//!            {root 9, depth 2: read}            call
//!            {root 7, depth 1: search, read}    call
//!            {resume: read}                     handler
//! ```
//!
//! A *lane* is a queue of waiters that are interchangeable: if one of them can start, each of them can. Its calls
//! share the root session, the depth, the need and, if they are serial, the nearest ancestor on the lease. A head
//! that cannot start blocks only its own lane. Neighbours that joined a lane together are kept as one *party*
//! (`party.rs`).
//!
//! `order.rs` chooses among the lanes, and `aging.rs` picks the waiter that has waited too long to be passed again.
//! After every change, no head is left that could start. So a newcomer that can start and whose lane is empty passes
//! nobody who could have started instead.
//!
//! The table has no clock: its callers pass the time, which is asked for only while something waits.

mod aging;
mod life;
mod lines;
mod listing;
mod order;
mod passing;
mod pools;
mod settle;
mod sleep;
mod slices;
mod trace;
mod trace_record;
mod turns;
mod zombies;

use crate::{
    ids::{EntryId, Ticket, UnitId},
    moment::Moment,
    need::{Ask, Need},
    refusal::Refusal,
    slab::Slab,
    store::{
        ages::Aging,
        backlog::Backlog,
        key::{LaneKey, Who},
        lanes::Lanes,
        leases::Leases,
        party::{Arrival, Newcomer, PlaceInLine},
        resource::Resource,
        units::{ClassRule, Unit},
    },
};
use foldhash::{HashMap, HashMapExt};
use smallvec::SmallVec;
use std::collections::VecDeque;
use toolyard_core::ToolClass;
use trace_record::TraceRecord;

/// The answer to a call that asks for admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// It runs, with this lease entry if it is serial.
    Granted(Option<EntryId>),
    /// It waits.
    Waiting(Ticket),
    /// It ends.
    Refused(Refusal),
}

/// The answer to a handler that wants to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// It holds everything again.
    Now,
    /// It waits.
    Waiting(Ticket),
}

/// A waiter that has been granted its need.
#[derive(Debug, Clone)]
pub(crate) struct GrantedWaiter<W> {
    pub(crate) waiter: W,
    pub(crate) need: Need,
    pub(crate) entry: Option<EntryId>,
}

/// The table. `W` stands for a waiter.
#[derive(Debug, Clone)]
pub(crate) struct Table<W> {
    classes: [ClassRule; ToolClass::ALL.len()],
    units: Slab<Unit>,
    leases: Leases,
    lanes: Lanes<W>,
    aging: Aging,
    /// Calls that wait; resumes are not counted.
    waiting: usize,
    waiting_by_root: HashMap<u64, usize>,
    queue_max: usize,
    queue_session_max: usize,
    /// The weights of root sessions, where they are not 1.
    weights: HashMap<u64, u8>,
    /// Whether a waiter's session may hold more than one credit, from a weight that may since have been reset.
    weighted: bool,
    tickets: u64,
    turns: u64,
    /// What has been freed and may unblock a waiter.
    freed: VecDeque<Resource>,
    /// What has been freed by a large change and is still to be looked at.
    backlog: Backlog,
    /// How many lanes and groups have been looked at, to be granted or passed over.
    #[cfg(test)]
    looks: std::cell::Cell<usize>,
    /// Almost always one or none, which needs no allocation.
    granted: SmallVec<[GrantedWaiter<W>; 1]>,
    refused: Vec<W>,
}

impl<W: PlaceInLine> Table<W> {
    /// `widths` are in the order of [`ToolClass::index`].
    pub(crate) fn new(
        widths: [usize; ToolClass::ALL.len()],
        queue_max: usize,
        queue_session_max: usize,
    ) -> Self {
        Self {
            classes: widths.map(ClassRule::new),
            units: Slab::new(),
            leases: Leases::new(),
            lanes: Lanes::new(),
            aging: Aging::default(),
            waiting: 0,
            waiting_by_root: HashMap::new(),
            queue_max,
            queue_session_max,
            weights: HashMap::new(),
            weighted: false,
            tickets: 0,
            turns: 0,
            freed: VecDeque::new(),
            backlog: Backlog::default(),
            #[cfg(test)]
            looks: std::cell::Cell::new(0),
            granted: SmallVec::new(),
            refused: Vec::new(),
        }
    }

    /// Whether something waits. Only then does the table need to know the time.
    pub(crate) fn has_waiters(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Grants a call at once if nothing waits and all it needs is free, as for nearly every call. `None`: use
    /// [`Table::admit`].
    #[inline(always)]
    pub(crate) fn try_grant(&mut self, ask: &Ask) -> Option<Option<EntryId>> {
        if self.has_waiters() || !ask.need.units().all(|unit| self.unit(unit).is_free(false)) {
            return None;
        }
        if let Some(lease) = ask.need.lease()
            && (self.is_serial_paused() || !self.leases.may_push(lease, self.holder(ask)))
        {
            return None;
        }
        Some(self.take(ask.need, ask.root, ask.lineage, 0))
    }

    /// Grants a call at once, queues it at the end of its lane, or refuses it.
    pub(crate) fn admit(
        &mut self,
        ask: &Ask,
        now: impl FnOnce() -> Moment,
        waiter: impl Newcomer<W>,
    ) -> Asked {
        let now = now();
        let (key, may_push) = self.key(ask);
        if let (Who::Call { may_not_wait: true, .. }, false) = (key.who, may_push) {
            self.trace_change(|| self.waiter_record("refuse", &key, ask.lineage, 0));
            return Asked::Refused(Refusal::SerialNesting);
        }
        self.age(now);
        let lane = self.lanes.find(&key);
        if lane.is_none() && self.can_start(&key, None) {
            return Asked::Granted(self.take(ask.need, ask.root, ask.lineage, 0));
        }
        if let Some(queue_max) = self.bound_met(ask.root) {
            return Asked::Refused(Refusal::QueueFull { queue_max });
        }
        *self.waiting_by_root.entry(ask.root).or_default() += 1;
        self.waiting += 1;
        ask.need.units().for_each(|unit| self.unit_mut(unit).queued += 1);
        if let Some(lease) = ask.need.lease() {
            self.leases.get_mut(lease).queued += 1;
        }
        let arrival = Arrival { number: self.next_ticket(), since: now, lineage: ask.lineage };
        Asked::Waiting(self.enqueue((&key, lane), arrival, waiter))
    }

    /// The lane of a call, and whether the call may push onto its lease now, if it needs one.
    fn key(&self, ask: &Ask) -> (LaneKey, bool) {
        let Ask { root, depth, lineage, need } = *ask;
        let Some(lease) = need.lease() else {
            return (
                LaneKey { need, who: Who::Call { root, depth, holder: None, may_not_wait: false } },
                true,
            );
        };
        let holder = self.holder(ask);
        let may_not_wait = self.leases.may_not_wait(lease, lineage);
        let who = Who::Call { root, depth, holder, may_not_wait };
        (LaneKey { need, who }, self.leases.may_push(lease, holder))
    }

    fn holder(&self, ask: &Ask) -> Option<EntryId> {
        ask.lineage.and_then(|_| self.leases.holder(ask.need.lease()?, ask.lineage))
    }

    /// The bound that forbids one more waiter in this root session (CC-4).
    fn bound_met(&self, root: u64) -> Option<usize> {
        let in_session = self.waiting_by_root.get(&root).copied().unwrap_or(0);
        if in_session >= self.queue_session_max {
            return Some(self.queue_session_max);
        }
        (self.waiting >= self.queue_max).then_some(self.queue_max)
    }

    fn next_ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// Takes all units of a need, which must be free, and pushes an entry onto its lease.
    #[inline(always)]
    fn take(&mut self, need: Need, root: u64, lineage: Option<EntryId>, ticket: u64) -> Option<EntryId> {
        need.units().for_each(|unit| self.unit_mut(unit).in_use += 1);
        let lease = need.lease();
        let entry = lease.map(|lease| self.leases.push(lease, lineage, root));
        self.trace_change(|| TraceRecord {
            root: Some(root),
            lineage,
            ticket,
            ..TraceRecord::of("grant", need, entry)
        });
        if let Some(lease) = lease {
            self.lease_changed(lease);
        }
        entry
    }

    /// The number of the last ticket.
    pub(crate) fn last_ticket(&self) -> u64 {
        self.tickets
    }

    /// Whether [`take_granted`](Self::take_granted) and [`take_refused`](Self::take_refused) would both be empty.
    pub(crate) fn has_no_decisions(&self) -> bool {
        self.granted.is_empty() && self.refused.is_empty()
    }

    /// Takes the waiters granted since the last call, in order.
    pub(crate) fn take_granted(&mut self) -> SmallVec<[GrantedWaiter<W>; 1]> {
        std::mem::take(&mut self.granted)
    }

    /// Takes the waiters refused since the last call: another call took their lease, and they may not wait for it
    /// (CC-8).
    pub(crate) fn take_refused(&mut self) -> Vec<W> {
        std::mem::take(&mut self.refused)
    }

    fn unit(&self, UnitId(key): UnitId) -> &Unit {
        self.units.get(key).expect("a need refers to open units only")
    }

    fn unit_mut(&mut self, UnitId(key): UnitId) -> &mut Unit {
        self.units.get_mut(key).expect("a need refers to open units only")
    }
}

#[cfg(test)]
mod tests;
