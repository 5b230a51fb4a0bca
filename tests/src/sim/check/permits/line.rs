//! The waiters: every waiter that could be granted was (CC-3), except for what is held back for the oldest (CC-3b),
//! and no call waits for a lease that it may not wait for (CC-8).

use super::{Broken, Need, Table};
use crate::sim::Permits;
use std::collections::BTreeMap;

/// Waiters older than this go first.
pub(super) const AGED_US: u64 = 2_000_000;

/// A waiter.
#[derive(Debug)]
pub(super) struct Waits<'a> {
    pub(super) need: Need<'a>,
    /// The root session; `None` for a handler that waits to resume.
    pub(super) root: Option<u64>,
    pub(super) since_us: u64,
    entry: Option<&'a str>,
    /// Its nearest ancestor on the lease it needs.
    pub(super) holder: Option<&'a str>,
    depth: u64,
    may_not_wait: bool,
}

impl<'a> Waits<'a> {
    fn of(table: &Table<'a>, change: &'a Permits, since_us: u64) -> Self {
        let (need, lineage) = (Need::of(change), change.lineage.as_deref());
        let lease = need.lease.filter(|_| change.root.is_some());
        Self {
            root: change.root,
            since_us,
            entry: change.entry.as_deref(),
            holder: lease.and_then(|lease| table.holder(lease, lineage)),
            depth: change.depth,
            may_not_wait: lease.is_some_and(|lease| table.may_not_wait(lease, lineage)),
            need,
        }
    }

    /// Whether both wait in the same lane (CC-3).
    fn is_like(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.root, it.entry, it.depth, it.holder, it.may_not_wait);
        key(self) == key(other) && self.need == other.need
    }

    fn could_push(&self, table: &Table<'_>) -> bool {
        self.need.lease.is_none_or(|lease| table.may_push(lease, self.holder))
    }
}

/// The waiters by ticket.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    pub(super) waits: BTreeMap<u64, Waits<'a>>,
    /// The time of the last change.
    at_us: u64,
    /// The last change, to recognise the changes that belong to it.
    last: Option<&'a Permits>,
    /// A lease that was refused to a call although, by the trace so far, it could still be pushed.
    refused: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// Checks the table before its next change: no waiter may be left that could be granted.
    pub(super) fn before(&mut self, table: &Table<'a>, change: &'a Permits, broken: &mut Broken<'_>) {
        if let Some(lease) = self.refused.take() {
            // A handler that wants to resume no longer lends its lease; the trace shows that a moment later.
            let resumes = change.what == "queue" && change.entry.as_deref() == table.top(lease);
            if !resumes && change.what == "refuse" {
                self.refused = Some(lease);
            } else if !resumes {
                broken("CC-8", format!("a call was refused {lease}, which it could have had; then"));
            }
        }
        if self.is_settled(change) {
            self.nobody_could_go(table, broken);
        }
        if change.what == "refuse" {
            self.refuse(table, change, broken);
        }
    }

    /// Whether this change starts a new step instead of belonging to the last one.
    fn is_settled(&self, change: &Permits) -> bool {
        let follows = match change.what.as_str() {
            "grant" | "resume" => change.ticket > 0,
            "quiet" => self.last.is_some_and(|last| last.what == "release" && last.entry == change.entry),
            "refuse" => true,
            "resize" | "pause" => self.last.is_some_and(|last| last.what == change.what),
            // A handler queues to resume, which is why others were refused.
            "queue" => self.last.is_some_and(|last| last.what == "refuse"),
            _ => false,
        };
        !follows
    }

    fn nobody_could_go(&self, table: &Table<'a>, broken: &mut Broken<'_>) {
        let aged = self.aged(table, self.at_us);
        for (ticket, waits) in &self.waits {
            let held_back = aged.filter(|aged| aged != ticket).and_then(|aged| self.waits.get(&aged));
            let could_go = match waits.root {
                Some(_) => table.has(&waits.need, waits.holder, held_back.map(|it| &it.need)),
                None => table.has_again(&waits.need, waits.entry),
            };
            // Calls behind the head of their lane wait for their turn.
            if could_go && self.is_head(*ticket) {
                broken("CC-3", format!("{ticket} waits and could go, {waits:?}, before"));
            }
            if waits.may_not_wait && !waits.could_push(table) {
                broken("CC-8", format!("{ticket} waits for a lease and may not, {waits:?}, before"));
            }
        }
    }

    pub(super) fn is_head(&self, ticket: u64) -> bool {
        let waits = &self.waits[&ticket];
        self.waits.range(..ticket).all(|(_, other)| !other.is_like(waits))
    }

    /// The oldest unpaused waiter over 2 s whose lease, if it needs one, could be pushed (CC-3b).
    pub(super) fn aged(&self, table: &Table<'_>, now_us: u64) -> Option<u64> {
        let is_paused = |waits: &Waits<'_>| match waits.need.lease {
            Some(_) => table.serial_paused,
            None => waits
                .need
                .units
                .iter()
                .filter(|name| name.starts_with("class"))
                .any(|name| table.units.get(name).is_some_and(|unit| unit.paused)),
        };
        let qualifies = |waits: &Waits<'_>| {
            waits.root.is_some()
                && now_us.saturating_sub(waits.since_us) > AGED_US
                && !is_paused(waits)
                && waits.could_push(table)
        };
        self.waits.iter().find(|(_, waits)| qualifies(waits)).map(|(ticket, _)| *ticket)
    }

    fn refuse(&mut self, table: &Table<'a>, change: &'a Permits, broken: &mut Broken<'_>) {
        let asks = Waits::of(table, change, 0);
        let waits = if change.ticket > 0 { self.waits.get(&change.ticket) } else { Some(&asks) };
        let Some(waits) = waits else { return };
        if !waits.may_not_wait {
            broken("CC-8", "a call is refused that may wait".to_owned());
        }
        if waits.could_push(table) {
            self.refused = waits.need.lease;
        }
    }

    /// Updates the waiters after a change.
    pub(super) fn after(&mut self, table: &Table<'a>, change: &'a Permits, at_us: u64) {
        match change.what.as_str() {
            "queue" => drop(self.waits.insert(change.ticket, Waits::of(table, change, at_us))),
            "grant" | "resume" | "cancel" | "refuse" => drop(self.waits.remove(&change.ticket)),
            _ => {}
        }
        (self.at_us, self.last) = (at_us, Some(change));
    }
}
