//! A change of the table, as `trace.rs` shows it.

use crate::{
    ids::{EntryId, UnitId},
    need::Need,
};

/// A change of the table.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TraceRecord {
    pub(super) what: &'static str,
    pub(super) need: Need,
    pub(super) root: Option<u64>,
    /// The lease entry of the serial call it is about, or that was created for it.
    pub(super) entry: Option<EntryId>,
    /// The call's nearest ancestor with a lease entry.
    pub(super) lineage: Option<EntryId>,
    /// The place in line it is about; 0 for a call that has not waited.
    pub(super) ticket: u64,
    pub(super) depth: u8,
}

impl TraceRecord {
    /// A change in what a handler holds.
    pub(super) fn of(what: &'static str, need: Need, entry: Option<EntryId>) -> Self {
        Self { what, need, entry, ..Self::default() }
    }

    /// A change of a unit itself.
    pub(super) fn of_unit(what: &'static str, unit: UnitId) -> Self {
        Self { what, need: Need::of(unit, None, None), ..Self::default() }
    }
}
