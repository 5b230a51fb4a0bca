//! Shows people what runs, what waits and what it waits for.

use super::leases::Lease;
use super::{EntryState, Moment, PlaceInLine, Scope, Table, UnitKind, Who, lane::Lane};
use crate::admission::PoolLoad;
use std::time::Duration;
use toolyard_core::ToolClass;

/// A lane as shown to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// The root session of the waiters. `None` for resumes of handlers that are not serial, which may be of several.
    pub(crate) root: Option<u64>,
    /// Whether the waiters are handlers that wait to resume.
    pub(crate) resumes: bool,
    /// How deep they are nested.
    pub(crate) depth: u8,
    /// How many wait in it.
    pub(crate) waiting: usize,
    /// How long the head has waited.
    pub(crate) oldest: Duration,
    /// What it lacks: resources that are unavailable now, or held back for another call.
    pub(crate) missing: Vec<Missing>,
    /// Whether it has the reservation: resources are held back for it (CC-3b).
    pub(crate) reserves: bool,
}

/// A resource that a waiter lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// A unit and its state.
    Unit {
        /// What it bounds.
        kind: UnitKind,
        /// How many are in use.
        in_use: usize,
        /// How wide the unit is.
        width: usize,
        /// How many of those in use are held by zombies.
        zombies: usize,
        /// Whether its class is paused.
        paused: bool,
    },
    /// A lease and its stack.
    Lease {
        /// Its scope.
        scope: Scope,
        /// Root session and state of each entry, from the top down.
        stack: Vec<(u64, EntryState)>,
        /// Whether the serial class is paused.
        paused: bool,
    },
}

impl<W: PlaceInLine> Table<W> {
    /// How many calls of a class are running and waiting. Parked handlers count as neither.
    pub(in crate::admission) fn load(&self, class: ToolClass) -> PoolLoad {
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
    pub(in crate::admission) fn lines(&self, now: Moment) -> Vec<Line> {
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
