//! Who has waited so long that nobody passes him any more (CC-3b).
//!
//! Of those who could go as far as their lease goes, the one that came first is next once he has waited over
//! 2 s. If he cannot go he *reserves*: one of each of his units that is free, and his lease, are held back for
//! him. Only one reserves at a time, and only while his lease could be stepped on: to hold units back and wait
//! for a lease would be the hold and wait that granting whole needs is there to avoid. Nor does a call of a
//! paused pool reserve: nothing that ends could let it go.
//!
//! Nothing here is remembered but whom the table has in mind: the reservation is always that of the first who
//! qualifies, and whoever held it before has lost it.

use super::queue::Change;
use super::{LeaseId, Moment, Need, Resource, Table, Told, UnitId, UnitKind, Waits, Who};
use std::collections::BTreeSet;
use toolyard_core::ToolClass;

/// How long a call is passed by others at most, in microseconds.
pub(super) const AGED_AFTER: u64 = 2_000_000;

/// The calls of one class: each has its list, that a paused one is skipped as a whole.
pub(super) const CLASSES: usize = ToolClass::ALL.len() + 1;

/// Whom things are held back for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) lane: u32,
    number: u64,
    need: Need,
}

/// The oldest heads, and the reservation.
#[derive(Debug, Clone, Default)]
pub(super) struct Aging {
    /// By class: every lane without a lease, and of the lanes of a lease the oldest that may step on it.
    eldest: [BTreeSet<(u64, u32)>; CLASSES],
    pub(super) reserved: Option<Reserved>,
    /// When somebody came to wait where nobody had: nobody has waited for longer.
    busy_since: Moment,
    /// The latest moment seen: a reservation is not lost to a clock that steps back.
    latest: Moment,
}

impl Aging {
    pub(super) fn relist(&mut self, class: usize, lane: u32, change: Change) {
        // In this order a list of one keeps its memory.
        self.eldest[class].extend(change.now.map(|now| (now, lane)));
        if let Some(before) = change.before {
            self.eldest[class].remove(&(before, lane));
        }
    }

    /// Somebody waits now where nobody did.
    pub(super) fn begin(&mut self, now: Moment) {
        self.busy_since = now;
    }

    pub(super) fn is_reserved_by(&self, lane: u32) -> bool {
        self.reserved.is_some_and(|reserved| reserved.lane == lane)
    }

    /// Whether one of this unit is held back from all but the lane that reserves it.
    pub(super) fn holds_unit(&self, unit: UnitId, from: Option<u32>) -> bool {
        self.reserved.is_some_and(|reserved| Some(reserved.lane) != from && reserved.need.has(unit))
    }

    /// The same for a lease.
    pub(super) fn holds_lease(&self, lease: LeaseId, from: Option<u32>) -> bool {
        self.reserved.is_some_and(|r| Some(r.lane) != from && r.need.lease == Some(lease))
    }
}

impl<W: Waits> Table<W> {
    /// The list of a need's class. What no pool bounds has the last one.
    pub(super) fn class_of(&self, need: Need) -> usize {
        match need.class().map(|unit| self.unit(unit).kind) {
            _ if need.lease.is_some() => ToolClass::Serial.index(),
            Some(UnitKind::Class(class)) => class.index(),
            Some(UnitKind::Tool | UnitKind::Session | UnitKind::Tree) | None => CLASSES - 1,
        }
    }

    /// Gives the reservation to whom it belongs now. What was held back for another has come free.
    pub(super) fn age(&mut self, now: Moment) {
        self.aging.latest = self.aging.latest.max(now);
        let busy_for = self.aging.latest.0.saturating_sub(self.aging.busy_since.0);
        if busy_for <= AGED_AFTER && self.aging.reserved.is_none() {
            return; // nearly always
        }
        let next = self.first_aged(self.aging.latest);
        if self.aging.reserved == next {
            return;
        }
        if let Some(lost) = std::mem::replace(&mut self.aging.reserved, next) {
            self.mark_freed(lost.need);
        }
    }

    fn first_aged(&self, now: Moment) -> Option<Reserved> {
        let is_paused = |class: usize| self.classes.get(class).is_some_and(|rule| rule.paused);
        let lists = self.aging.eldest.iter().enumerate().filter(|(class, _)| !is_paused(*class));
        let (_, at) = *lists.filter_map(|(_, list)| list.first()).min()?;
        let lane = self.lanes.open_one(at);
        let head = lane.head().expect("an open lane has a head");
        let is_aged = now.0.saturating_sub(head.since.0) > AGED_AFTER;
        is_aged.then_some(Reserved { lane: at, number: head.number, need: lane.key.need })
    }

    /// Notes what has come free.
    pub(super) fn mark_freed(&mut self, need: Need) {
        self.freed.extend(need.units().map(Resource::Unit));
        self.freed.extend(need.lease.map(Resource::Lease));
    }

    /// After a change of who stands on a lease: those who can no longer step on it and may not wait for it
    /// end (CC-8), and the oldest who may step on it now is listed with the oldest of all.
    pub(super) fn lease_changed(&mut self, id: LeaseId) {
        let lease = self.leases.get(id);
        if lease.queue.is_none() {
            debug_assert!(lease.heads.is_empty() && lease.eldest.is_none(), "nobody waits");
            return;
        }
        if !lease.strict.is_empty() {
            self.refuse_nested(id);
        }
        self.list_eldest(id);
    }

    fn refuse_nested(&mut self, id: LeaseId) {
        let mut ended = Vec::new();
        let strict: Vec<u32> = self.leases.get(id).strict.iter().copied().collect();
        for lane in strict {
            let key = self.lanes.open_one(lane).key;
            let Who::Call { holder, .. } = key.who else { continue };
            if self.leases.may_push(id, holder) {
                continue;
            }
            let open = self.lanes.open_one_mut(lane);
            let len = open.len();
            ended.extend(open.take_all());
            self.left(&key, len);
            self.relist(lane);
        }
        ended.sort_by_key(|(number, _)| *number);
        ended.iter().for_each(|(number, _)| {
            self.tell(|| Told { ticket: *number, ..Told::of("refuse", Need::default(), None) })
        });
        self.refused.extend(ended.into_iter().map(|(_, waiter)| waiter));
    }

    pub(super) fn list_eldest(&mut self, id: LeaseId) {
        let eldest = self.eldest_on(id);
        let before = std::mem::replace(&mut self.leases.get_mut(id).eldest, eldest);
        if before != eldest {
            let list = &mut self.aging.eldest[ToolClass::Serial.index()];
            if let Some(before) = before {
                list.remove(&before);
            }
            list.extend(eldest);
        }
    }

    fn eldest_on(&self, id: LeaseId) -> Option<(u64, u32)> {
        let lease = self.leases.get(id);
        if lease.top.is_none() || faulty!(AgingHoldsWithoutLease) {
            return lease.heads.first().copied();
        }
        let able = self.lanes_on_top(id).filter(|lane| self.may_push(id, *lane));
        able.filter_map(|lane| Some((self.lanes.open_one(lane).turn()?, lane))).min()
    }

    /// The lanes of the root session of the call on top: it alone has calls that might step on a lent lease.
    pub(super) fn lanes_on_top(&self, id: LeaseId) -> impl Iterator<Item = u32> {
        let lease = self.leases.get(id);
        let root = lease.top.map(|top| self.leases.entry(top).root);
        let queue = lease.queue.as_ref().zip(root);
        queue.into_iter().flat_map(|(queue, root)| queue.lanes_of(root))
    }

    fn may_push(&self, id: LeaseId, lane: u32) -> bool {
        let Who::Call { holder, .. } = self.lanes.open_one(lane).key.who else { return false };
        self.leases.may_push(id, holder)
    }
}
