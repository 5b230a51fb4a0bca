//! Aging: which waiter has waited so long that no other passes it any more (CC-3b).
//!
//! Of the waiters whose lease (if they need one) can be pushed now, the oldest goes next once it has waited over 2 s.
//! If it cannot start, it *reserves*: one of each of its units and its lease are held back for it. There is only one
//! reservation at a time, and it lasts only while the lease can be pushed: holding units back while waiting for a
//! lease would be the hold-and-wait that granting whole needs avoids. A call of a paused pool does not reserve
//! either, because no call that ends could let it start.
//!
//! The reservation is recomputed on every change: it always belongs to the first waiter that qualifies, and a
//! previous holder loses it.

use super::queue::Change;
use super::{LeaseId, Moment, Need, PlaceInLine, Resource, Table, TraceRecord, UnitId, UnitKind, Who};
use std::collections::BTreeSet;
use toolyard_core::ToolClass;

/// How long other calls may pass a waiting call, in microseconds.
pub(super) const AGED_AFTER: u64 = 2_000_000;

/// The number of `eldest` lists: one per class, so that a paused class is skipped as a whole, and one for calls that
/// no pool bounds.
pub(super) const CLASSES: usize = ToolClass::ALL.len() + 1;

/// The waiter for which resources are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) lane: u32,
    number: u64,
    need: Need,
}

/// The oldest heads, and the reservation.
#[derive(Debug, Clone, Default)]
pub(super) struct Aging {
    /// By class: every lane without a lease, and for each lease the oldest of its lanes that may push onto it.
    eldest: [BTreeSet<(u64, u32)>; CLASSES],
    pub(super) reserved: Option<Reserved>,
    /// When the line was last empty before a waiter came: nothing has waited longer than since then.
    busy_since: Moment,
    /// The latest moment seen, so that a clock that steps back does not end a reservation.
    latest: Moment,
}

impl Aging {
    pub(super) fn relist(&mut self, class: usize, lane: u32, change: Change) {
        // Insert before removing, so that a set of one keeps its memory.
        self.eldest[class].extend(change.now.map(|now| (now, lane)));
        if let Some(before) = change.before {
            self.eldest[class].remove(&(before, lane));
        }
    }

    /// Notes that a waiter has come to an empty line.
    pub(super) fn begin(&mut self, now: Moment) {
        self.busy_since = now;
    }

    pub(super) fn is_reserved_by(&self, lane: u32) -> bool {
        self.reserved.is_some_and(|reserved| reserved.lane == lane)
    }

    /// Whether one of this unit is held back from every lane except the one that reserves it.
    pub(super) fn holds_unit(&self, unit: UnitId, from: Option<u32>) -> bool {
        self.reserved.is_some_and(|reserved| Some(reserved.lane) != from && reserved.need.has(unit))
    }

    /// The same for a lease.
    pub(super) fn holds_lease(&self, lease: LeaseId, from: Option<u32>) -> bool {
        self.reserved.is_some_and(|r| Some(r.lane) != from && r.need.lease() == Some(lease))
    }
}

impl<W: PlaceInLine> Table<W> {
    /// The list of a need's class. Calls that no pool bounds use the last list.
    pub(super) fn class_of(&self, need: Need) -> usize {
        match need.class().map(|unit| self.unit(unit).kind) {
            _ if need.lease().is_some() => ToolClass::Serial.index(),
            Some(UnitKind::Class(class)) => class.index(),
            Some(UnitKind::Tool | UnitKind::Session | UnitKind::Tree | UnitKind::Threads) | None => {
                CLASSES - 1
            }
        }
    }

    /// Gives the reservation to the waiter it belongs to now, and frees what was held back for another.
    pub(super) fn age(&mut self, now: Moment) {
        self.aging.latest = self.aging.latest.max(now);
        let busy_for = self.aging.latest.0.saturating_sub(self.aging.busy_since.0);
        if busy_for <= AGED_AFTER && self.aging.reserved.is_none() {
            return; // almost always
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

    /// Marks the units and the lease of a need as freed.
    pub(super) fn mark_freed(&mut self, need: Need) {
        self.freed.extend(need.units().map(Resource::Unit));
        self.freed.extend(need.lease().map(Resource::Lease));
    }

    /// Updates a lease after a change of its stack. Calls that cannot push any more and may not wait for the lease
    /// end (CC-8), and the oldest lane that may push now is listed in `Aging::eldest`.
    pub(super) fn lease_changed(&mut self, id: LeaseId) {
        let lease = self.leases.get(id);
        if lease.queue.is_none() {
            debug_assert!(lease.heads.is_empty() && lease.eldest.is_none(), "nobody waits");
            return;
        }
        if !lease.may_not_wait.is_empty() {
            self.refuse_nested(id);
        }
        self.list_eldest(id);
    }

    fn refuse_nested(&mut self, id: LeaseId) {
        let mut ended = Vec::new();
        let may_not_wait: Vec<u32> = self.leases.get(id).may_not_wait.iter().copied().collect();
        for lane in may_not_wait {
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
            self.trace_change(|| TraceRecord {
                ticket: *number,
                ..TraceRecord::of("refuse", Need::default(), None)
            })
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
        if lease.top.is_none() {
            return lease.heads.first().copied();
        }
        // Only calls under the top entry may push onto a lent lease.
        let top = lease.top.filter(|_| self.leases.is_empty_or_lent(id))?;
        let (_, number, lane) = lease.nested.range((top, 0, 0)..=(top, u64::MAX, u32::MAX)).next()?;
        Some((*number, *lane))
    }
}
