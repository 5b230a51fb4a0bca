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
mod lane;
mod lanes;
mod leases;
mod life;
mod lines;
mod need;
mod order;
mod party;
mod pools;
mod queue;
mod slab;
mod sleep;
mod slices;
mod trace;
mod units;
mod zombies;

pub(crate) use lanes::Ticket;
pub(crate) use leases::{EntryId, EntryState, LeaseId, Scope};
pub(super) use life::Resumed;
pub(crate) use lines::{Line, Missing};
pub(crate) use need::{Ask, Need};
pub(super) use party::{Newcomer, PlaceInLine};
pub(crate) use sleep::Reach;
pub(crate) use units::{UnitId, UnitKind};

use aging::Aging;
use foldhash::{HashMap, HashMapExt};
use lanes::{LaneKey, Lanes, Who};
use leases::Leases;
use party::Arrival;
use pools::ClassRule;
use queue::{Change, Listing, Queue, Turn};
use slab::Slab;
use sleep::Sleep;
use slices::Backlog;
use smallvec::SmallVec;
use std::collections::VecDeque;
use toolyard_core::ToolClass;
use trace::TraceRecord;
use units::Unit;

/// When something happens, in microseconds from an origin that is fixed for a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(pub(crate) u64);

/// Why a call may not even wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The session's or the engine's queue is full (CC-4).
    QueueFull {
        /// The bound that was reached.
        queue_max: usize,
    },
    /// Its lease is not available now, and what its ancestors hold forbids waiting for it (CC-8).
    SerialNesting,
}

/// The answer to a call that asks for admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// It runs, with this lease entry if it is serial.
    Granted(Option<EntryId>),
    /// It waits.
    Waiting(Ticket),
    /// It ends.
    Refused(Refusal),
}

/// A waiter that has been granted its need.
#[derive(Debug, Clone)]
pub(super) struct GrantedWaiter<W> {
    pub(super) waiter: W,
    pub(super) need: Need,
    pub(super) entry: Option<EntryId>,
}

/// What a release makes available: a unit or a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Resource {
    Unit(UnitId),
    Lease(LeaseId),
}

/// The table. `W` stands for a waiter.
#[derive(Debug, Clone)]
pub(super) struct Table<W> {
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
    pub(super) fn new(
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
    pub(super) fn has_waiters(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Grants a call at once if nothing waits and all it needs is free, as for nearly every call. `None`: use
    /// [`Table::admit`].
    #[inline(always)]
    pub(super) fn try_grant(&mut self, ask: &Ask) -> Option<Option<EntryId>> {
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
    pub(super) fn admit(
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
        // While a large change is being settled, a newcomer passes nobody who may be next.
        if lane.is_none() && self.can_start(&key, None) && !self.is_owed(ask.need) {
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

    /// Adds a waiter to the end of its lane, opening the lane if necessary.
    #[inline]
    fn enqueue(
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

    /// A trace record about a waiter.
    fn waiter_record(
        &self,
        what: &'static str,
        key: &LaneKey,
        lineage: Option<EntryId>,
        ticket: u64,
    ) -> TraceRecord {
        let record = TraceRecord { lineage, ticket, ..TraceRecord::of(what, key.need, None) };
        match key.who {
            Who::Call { root, depth, .. } => TraceRecord { root: Some(root), depth, ..record },
            Who::Resume { entry } => TraceRecord { entry, ..record },
        }
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

    /// Takes a waiter out of the line (CC-9); `None` when it has been granted or refused. This may unblock others:
    /// see [`Table::take_granted`]. A handler that was waiting to resume is parked again.
    pub(super) fn cancel(&mut self, ticket: Ticket, now: impl FnOnce() -> Moment) -> Option<W> {
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
    fn left(&mut self, key: &LaneKey, count: usize) {
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
    fn relist(&mut self, lane: u32) {
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

    /// Sets the weight of a root session: how many of its calls are granted before it is another session's turn
    /// (CC-3). The default is 1; the caller resets a session that ends to 1.
    pub(super) fn set_weight(&mut self, root: u64, weight: u8) {
        debug_assert!(matches!(weight, 1 | 2 | 4), "a priority is one of three");
        if weight > 1 {
            self.weights.insert(root, weight);
        } else {
            self.weights.remove(&root);
        }
    }

    /// A new turn for a root session, behind all others.
    fn next_turn(&mut self, root: u64) -> Turn {
        self.turns += 1;
        let weight = self.weight(root);
        self.weighted |= weight > 1;
        Turn { number: self.turns, weight }
    }

    fn weight(&self, root: u64) -> u8 {
        if self.weights.is_empty() { 1 } else { self.weights.get(&root).copied().unwrap_or(1) }
    }

    /// The number of the last ticket.
    pub(super) fn last_ticket(&self) -> u64 {
        self.tickets
    }

    /// Whether [`take_granted`](Self::take_granted) and [`take_refused`](Self::take_refused) would both be empty.
    pub(super) fn has_no_decisions(&self) -> bool {
        self.granted.is_empty() && self.refused.is_empty()
    }

    /// Takes the waiters granted since the last call, in order.
    pub(super) fn take_granted(&mut self) -> SmallVec<[GrantedWaiter<W>; 1]> {
        std::mem::take(&mut self.granted)
    }

    /// Takes the waiters refused since the last call: another call took their lease, and they may not wait for it
    /// (CC-8).
    pub(super) fn take_refused(&mut self) -> Vec<W> {
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
