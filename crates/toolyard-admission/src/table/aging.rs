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

use super::{Table, trace_record::TraceRecord};
use crate::{
    ids::LeaseId,
    moment::Moment,
    need::Need,
    store::{
        ages::{AGED_AFTER, CLASSES, Reserved},
        key::Who,
        party::PlaceInLine,
        resource::Resource,
    },
    unit::UnitKind,
};
use toolyard_core::ToolClass;

impl<W: PlaceInLine> Table<W> {
    /// The list of a need's class. Calls that no pool bounds use the last list.
    pub(super) fn class_of(&self, need: Need) -> usize {
        match need.class().map(|unit| self.unit(unit).kind) {
            _ if need.lease().is_some() => ToolClass::Serial.index(),
            Some(UnitKind::Class(class)) => class.index(),
            Some(UnitKind::Tool(_) | UnitKind::Session | UnitKind::Tree | UnitKind::Threads) | None => {
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
