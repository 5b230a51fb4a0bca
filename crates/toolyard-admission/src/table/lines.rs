//! Shows people what runs, what waits and what it waits for.

use super::Table;
use crate::{
    line::{Line, Missing, PoolLoad},
    moment::Moment,
    store::{key::Who, lane::Lane, leases::Lease, party::PlaceInLine},
    unit::UnitKind,
};
use std::time::Duration;
use toolyard_core::ToolClass;

impl<W: PlaceInLine> Table<W> {
    /// How many calls of a class are running and waiting. Parked handlers count as neither.
    pub(crate) fn load(&self, class: ToolClass) -> PoolLoad {
        if class == ToolClass::Serial {
            let running = self.leases.entries().filter(|entry| entry.runs()).count();
            let queued = self.leases.iter().map(|(_, lease)| lease.queued).sum();
            return PoolLoad { running, queued };
        }
        let units = self.units.iter().map(|(_, unit)| unit);
        let units = units.filter(|unit| unit.kind == UnitKind::Class(class));
        let (mut running, mut queued) = (0, 0);
        for unit in units {
            running += unit.in_use;
            queued += unit.queued;
        }
        PoolLoad { running, queued }
    }

    /// What each lane waits for, the longest wait first.
    pub(crate) fn lines(&self, now: Moment) -> Vec<Line> {
        let mut lines: Vec<(u64, Line)> =
            self.lanes.iter().filter_map(|lane| Some((lane.turn()?, self.line(lane, now)))).collect();
        lines.sort_by_key(|(number, _)| *number);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    fn line(&self, lane: &Lane<W>, now: Moment) -> Line {
        let (root, depth, resumes) = match lane.key.who {
            Who::Call { root, depth, .. } => (Some(root), depth, false),
            Who::Resume { entry } => (entry.map(|entry| self.leases.entry(entry).root), 0, true),
        };
        let since = lane.head().map_or(now, |head| head.since);
        let at = self.lanes.find(&lane.key);
        Line {
            root,
            resumes,
            depth,
            waiting: lane.len(),
            oldest: Duration::from_micros(now.0.saturating_sub(since.0)),
            missing: self.missing(lane, at),
            reserves: at.is_some_and(|at| self.aging.is_reserved_by(at)),
        }
    }

    fn missing(&self, lane: &Lane<W>, at: Option<u32>) -> Vec<Missing> {
        let units = lane.key.need.units().filter(|id| match lane.key.who {
            Who::Call { .. } => !self.unit(*id).is_free(self.aging.holds_unit(*id, at)),
            Who::Resume { .. } => !self.unit(*id).has_room(false),
        });
        let units = units.map(|id| {
            let unit = self.unit(id);
            let (kind, paused) = (unit.kind, unit.paused);
            Missing::Unit { kind, in_use: unit.in_use, width: unit.width, zombies: unit.zombies, paused }
        });
        units.chain(self.missing_lease(lane, at)).collect()
    }

    fn missing_lease(&self, lane: &Lane<W>, at: Option<u32>) -> Option<Missing> {
        let paused = self.is_serial_paused();
        let id = match lane.key.who {
            Who::Call { holder, .. } => lane.key.need.lease().filter(|lease| {
                paused || self.aging.holds_lease(*lease, at) || !self.leases.may_push(*lease, holder)
            }),
            Who::Resume { entry } => {
                let entry = entry.map(|entry| (entry, self.leases.entry(entry).lease));
                entry
                    .filter(|(entry, lease)| self.leases.get(*lease).top != Some(*entry))
                    .map(|(_, lease)| lease)
            }
        }?;
        let Lease { scope, .. } = self.leases.get(id);
        let stack = self.leases.stack(id).map(|(_, entry)| (entry.root, entry.state)).collect();
        Some(Missing::Lease { scope: scope.clone(), stack, paused })
    }
}
