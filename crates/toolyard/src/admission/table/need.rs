//! What a call needs to run, and who asks for it.

use super::{EntryId, LeaseId, UnitId};

/// Everything a call needs, all at once (CC-1): counting units, and a lease if it is serial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Need {
    units: [Option<UnitId>; Need::UNITS_MAX],
    pub(super) lease: Option<LeaseId>,
}

impl Need {
    /// Class, tool limit, session cap, tree cap.
    const UNITS_MAX: usize = 4;

    /// The need of a call that is not serial; what is `None` is not bounded.
    pub(crate) fn of(class: UnitId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { units: [Some(class), tool, session, None], lease: None }
    }

    /// The need of a serial call: a lease in place of a class.
    pub(crate) fn serial(lease: LeaseId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { units: [None, tool, session, None], lease: Some(lease) }
    }

    /// The same, and a tree cap.
    #[must_use]
    pub(crate) fn in_tree(mut self, tree: UnitId) -> Self {
        self.units[3] = Some(tree);
        self
    }

    pub(super) fn units(self) -> impl Iterator<Item = UnitId> {
        self.units.into_iter().flatten()
    }

    pub(super) fn class(self) -> Option<UnitId> {
        self.units[0]
    }

    pub(super) fn has(&self, unit: UnitId) -> bool {
        self.units.contains(&Some(unit))
    }

    /// Those units that `keep` names, and the rest. The lease is in neither: it goes by its entry.
    pub(in crate::admission) fn split(self, keep: impl Fn(UnitId) -> bool) -> (Self, Self) {
        let (mut kept, mut rest) = (Self::default(), Self::default());
        for (at, unit) in self.units.into_iter().enumerate() {
            let side = if unit.is_some_and(&keep) { &mut kept } else { &mut rest };
            side.units[at] = unit;
        }
        (kept, rest)
    }
}

/// A call that wants to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The number of the root session: whose turn it is goes by root sessions.
    pub(crate) root: u64,
    /// How deep the call is nested. Deeper calls go first inside a root session.
    pub(crate) depth: u8,
    /// The nearest ancestor that stands on a lease, whichever lease that is.
    pub(crate) lineage: Option<EntryId>,
    /// What it needs.
    pub(crate) need: Need,
}

impl Ask {
    /// A call that no other call made.
    #[cfg(any(test, toolyard_faults))]
    pub(crate) fn of_root(root: u64, need: Need) -> Self {
        Self { root, depth: 0, lineage: None, need }
    }
}
