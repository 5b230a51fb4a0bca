//! The oldest heads, and the waiter for which resources are held back (`table/aging.rs`).

use super::queue::Change;
use crate::{
    ids::{LeaseId, UnitId},
    moment::Moment,
    need::Need,
};
use std::collections::BTreeSet;
use toolyard_core::ToolClass;

/// How long other calls may pass a waiting call, in microseconds.
pub(crate) const AGED_AFTER: u64 = 2_000_000;

/// The number of `eldest` lists: one per class, so that a paused class is skipped as a whole, and one for calls that
/// no pool bounds.
pub(crate) const CLASSES: usize = ToolClass::ALL.len() + 1;

/// The waiter for which resources are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) lane: u32,
    pub(crate) number: u64,
    pub(crate) need: Need,
}

/// The oldest heads, and the reservation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aging {
    /// By class: every lane without a lease, and for each lease the oldest of its lanes that may push onto it.
    pub(crate) eldest: [BTreeSet<(u64, u32)>; CLASSES],
    pub(crate) reserved: Option<Reserved>,
    /// When the line was last empty before a waiter came: nothing has waited longer than since then.
    pub(crate) busy_since: Moment,
    /// The latest moment seen, so that a clock that steps back does not end a reservation.
    pub(crate) latest: Moment,
}

impl Aging {
    pub(crate) fn relist(&mut self, class: usize, lane: u32, change: Change) {
        // Insert before removing, so that a set of one keeps its memory.
        self.eldest[class].extend(change.now.map(|now| (now, lane)));
        if let Some(before) = change.before {
            self.eldest[class].remove(&(before, lane));
        }
    }

    /// Notes that a waiter has come to an empty line.
    pub(crate) fn begin(&mut self, now: Moment) {
        self.busy_since = now;
    }

    pub(crate) fn is_reserved_by(&self, lane: u32) -> bool {
        self.reserved.is_some_and(|reserved| reserved.lane == lane)
    }

    /// Whether one of this unit is held back from every lane except the one that reserves it.
    pub(crate) fn holds_unit(&self, unit: UnitId, from: Option<u32>) -> bool {
        self.reserved.is_some_and(|reserved| Some(reserved.lane) != from && reserved.need.has(unit))
    }

    /// The same for a lease.
    pub(crate) fn holds_lease(&self, lease: LeaseId, from: Option<u32>) -> bool {
        self.reserved.is_some_and(|r| Some(r.lane) != from && r.need.lease() == Some(lease))
    }
}
