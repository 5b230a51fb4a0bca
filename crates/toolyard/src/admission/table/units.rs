//! What is counted, and what a call needs of it.

use super::lanes::Turn;
use std::collections::BTreeSet;
use toolyard_core::ToolClass;

/// A counting semaphore of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UnitId(pub(super) u32);

/// What a unit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// The width of a pool, or the serial lease.
    Class(ToolClass),
    /// Calls of one tool in one agent.
    Tool,
    /// Calls of one session.
    Session,
}

/// The units a call needs, all at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Need {
    units: [Option<UnitId>; Need::UNITS_MAX],
}

impl Need {
    /// Tool limit, class, session cap.
    const UNITS_MAX: usize = 3;

    /// The units given; what is `None` is not bounded.
    pub(crate) fn of(class: UnitId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { units: [Some(class), tool, session] }
    }

    pub(super) fn iter(self) -> impl Iterator<Item = UnitId> {
        self.units.into_iter().flatten()
    }

    /// Those units that `keep` names, and the rest.
    pub(in crate::admission) fn split(self, keep: impl Fn(UnitId) -> bool) -> (Self, Self) {
        let (mut kept, mut rest) = (Self::default(), Self::default());
        for (at, unit) in self.units.into_iter().enumerate() {
            let side = if unit.is_some_and(&keep) { &mut kept } else { &mut rest };
            side.units[at] = unit;
        }
        (kept, rest)
    }
}

/// One counting semaphore.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    pub(super) width: usize,
    pub(super) in_use: usize,
    /// How many of those in use are held by handlers that were given up and still run.
    pub(super) zombies: usize,
    pub(super) paused: bool,
    /// Calls that wait and need this unit.
    pub(super) queued: usize,
    /// The lanes with a waiter that needs this unit, whose turn is first in front.
    pub(super) lanes: BTreeSet<Turn>,
}

impl Unit {
    pub(super) fn new(kind: UnitKind, width: usize, paused: bool) -> Self {
        Self { kind, width, in_use: 0, zombies: 0, paused, queued: 0, lanes: BTreeSet::new() }
    }

    pub(super) fn is_free(&self) -> bool {
        !self.paused && self.in_use < self.width
    }

    /// Whether nothing but handlers that were given up keeps it from being free.
    pub(super) fn is_held_by_zombies(&self) -> bool {
        !self.paused && self.in_use >= self.width && self.in_use - self.zombies < self.width
    }
}
