//! What a call needs to run, and the request for it.

use super::{EntryId, LeaseId, UnitId};

/// Everything a call needs, all at once (CC-1): counting units, and a lease if it is serial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Need {
    units: [Option<UnitId>; Need::UNITS_MAX],
    pub(super) lease: Option<LeaseId>,
}

impl Need {
    /// Class, tool limit, session cap and tree cap.
    const UNITS_MAX: usize = 4;

    /// The need of a call that is not serial. `None` means unbounded.
    pub(crate) fn of(class: UnitId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { units: [Some(class), tool, session, None], lease: None }
    }

    /// The need of a serial call: a lease instead of a class unit.
    pub(crate) fn serial(lease: LeaseId, tool: Option<UnitId>, session: Option<UnitId>) -> Self {
        Self { units: [None, tool, session, None], lease: Some(lease) }
    }

    /// Adds a tree cap.
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

    /// Whether some unit or lease is in both.
    pub(super) fn shares_with(self, other: Self) -> bool {
        self.units().any(|unit| other.has(unit)) || (self.lease.is_some() && self.lease == other.lease)
    }

    /// The units that `keep` selects, without the lease.
    pub(super) fn only(self, keep: impl Fn(UnitId) -> bool) -> Self {
        Self { units: self.units.map(|unit| unit.filter(|unit| keep(*unit))), lease: None }
    }

    /// The same units with this lease.
    pub(super) fn with_lease(self, lease: Option<LeaseId>) -> Self {
        Self { lease, ..self }
    }

    /// Splits the units into those that `keep` selects and the rest. Neither has the lease: its entry stands for it.
    pub(in crate::admission) fn split(self, keep: impl Fn(UnitId) -> bool) -> (Self, Self) {
        let (mut kept, mut rest) = (Self::default(), Self::default());
        for (at, unit) in self.units.into_iter().enumerate() {
            let side = if unit.is_some_and(&keep) { &mut kept } else { &mut rest };
            side.units[at] = unit;
        }
        (kept, rest)
    }
}

/// A request to run a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    /// The number of the root session. Fairness is among root sessions.
    pub(crate) root: u64,
    /// How deep the call is nested. Within a root session deeper calls are granted first.
    pub(crate) depth: u8,
    /// The nearest ancestor that has an entry on any lease.
    pub(crate) lineage: Option<EntryId>,
    /// What it needs.
    pub(crate) need: Need,
}

impl Ask {
    /// A call at the root, not made by another call.
    #[cfg(any(test, toolyard_faults))]
    pub(crate) fn of_root(root: u64, need: Need) -> Self {
        Self { root, depth: 0, lineage: None, need }
    }
}
