//! Traces every change of the table, in order and under its lock, at level TRACE with target `toolyard::permits`.
//!
//! ```text
//!   queue    ticket=3 root=1 depth=0 units="class read 0.1 1/1" waiting=1
//!   release  units="class read 0.1 0/1"
//!   grant    ticket=3 root=1 units="class read 0.1 1/1" waiting=0
//! ```
//!
//! Each unit shows how many are in use and its width, both after the change. Without a subscriber, all of this costs
//! one relaxed load.

use super::{Table, trace_record::TraceRecord};
use crate::{
    ids::{EntryId, LeaseId, UnitId},
    lease::Scope,
    need::Need,
    store::{
        key::{LaneKey, Who},
        party::PlaceInLine,
        units::Unit,
    },
    unit::UnitKind,
};
use std::fmt;
use tracing::level_filters::LevelFilter;

impl<W: PlaceInLine> Table<W> {
    /// Traces a change.
    #[inline(always)]
    pub(super) fn trace_change(&self, record: impl FnOnce() -> TraceRecord) {
        if LevelFilter::current() == LevelFilter::TRACE {
            self.trace(record());
        }
    }

    /// A trace record about a waiter.
    pub(super) fn waiter_record(
        &self,
        what: &'static str,
        key: &LaneKey,
        lineage: Option<EntryId>,
        ticket: u64,
    ) -> TraceRecord {
        let record = TraceRecord { lineage, ticket, ..TraceRecord::of(what, key.need, None) };
        match key.who {
            Who::Call { root, depth, .. } => TraceRecord { root: Some(root), depth, ..record },
            Who::Resume { entry } => TraceRecord { entry, ..record },
        }
    }

    #[cold]
    #[inline(never)]
    fn trace(&self, record: TraceRecord) {
        let TraceRecord { what, need, root, entry, lineage, ticket, depth } = record;
        tracing::trace!(
            target: "toolyard::permits",
            what,
            units = %Units { table: self, need },
            lease = need.lease().or_else(|| self.lease_of(entry?)).map(|id| tracing::field::display(Lease { table: self, id })),
            root,
            weight = root.map(|root| self.weight(root)),
            entry = entry.map(|EntryId(key)| tracing::field::display(key)),
            lineage = lineage.map(|EntryId(key)| tracing::field::display(key)),
            ticket,
            depth,
            waiting = self.waiting,
        );
    }

    fn lease_of(&self, entry: EntryId) -> Option<LeaseId> {
        self.leases.find(entry).map(|entry| entry.lease)
    }
}

struct Units<'a, W> {
    table: &'a Table<W>,
    need: Need,
}

impl<W: PlaceInLine> fmt::Display for Units<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, UnitId(key)) in self.need.units().enumerate() {
            // A need names open units only, but a trace must not panic.
            let Some(Unit { kind, paused, width, in_use, .. }) = self.table.units.get(key) else { continue };
            let (before, kind) = (if at == 0 { "" } else { ", " }, Kind(*kind));
            let paused = if *paused { " paused" } else { "" };
            write!(f, "{before}{kind} {key} {in_use}/{width}{paused}")?;
        }
        Ok(())
    }
}

struct Kind(UnitKind);

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            UnitKind::Class(class) => write!(f, "class {class}"),
            UnitKind::Tool(_) => f.write_str("tool"),
            UnitKind::Session => f.write_str("session"),
            UnitKind::Tree => f.write_str("tree"),
            UnitKind::Threads => f.write_str("threads"),
        }
    }
}

struct Lease<'a, W> {
    table: &'a Table<W>,
    id: LeaseId,
}

impl<W: PlaceInLine> fmt::Display for Lease<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeaseId(key) = self.id;
        match &self.table.leases.get(self.id).scope {
            Scope::Tree => write!(f, "tree {key}")?,
            Scope::Named(name) => write!(f, "named {name} {key}")?,
        }
        f.write_str(if self.table.is_serial_paused() { " paused" } else { "" })
    }
}
