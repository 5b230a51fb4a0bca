//! Those who wait: whoever can go has gone (CC-3), but for what is held back for the oldest (CC-3b); who may not
//! wait for a lease does not (CC-8).

use super::{Broken, Need, Table};
use crate::sim::Permits;
use std::collections::BTreeMap;

/// Who has waited longer than that goes first.
pub(super) const AGED_US: u64 = 2_000_000;

/// One who waits.
#[derive(Debug)]
pub(super) struct Waits<'a> {
    pub(super) need: Need<'a>,
    /// The root session; a handler that goes on has none.
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

    /// Whether it waits in the same lane (CC-3).
    fn is_like(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.root, it.entry, it.depth, it.holder, it.may_not_wait);
        key(self) == key(other) && self.need == other.need
    }

    fn could_push(&self, table: &Table<'_>) -> bool {
        self.need.lease.is_none_or(|lease| table.may_push(lease, self.holder))
    }
}

/// Those who wait, by their tickets.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    pub(super) waits: BTreeMap<u64, Waits<'a>>,
    /// When the table changed last.
    at_us: u64,
    /// What was changed last, for what belongs to the same change.
    last: Option<&'a Permits>,
    /// A lease that was refused to a call while it could still be stepped on, as far as was told.
    refused: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// Looks at the table before its next change: everybody who could go has gone.
    pub(super) fn before(&mut self, table: &Table<'a>, change: &'a Permits, broken: &mut Broken<'_>) {
        if let Some(lease) = self.refused.take() {
            // A handler that is to go on lends no more; that is told a moment later.
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

    /// Whether this is the begin of another change.
    fn is_settled(&self, change: &Permits) -> bool {
        let follows = match change.what.as_str() {
            "grant" | "resume" => change.ticket > 0,
            "quiet" => self.last.is_some_and(|last| last.what == "release" && last.entry == change.entry),
            "refuse" => true,
            "resize" | "pause" => self.last.is_some_and(|last| last.what == change.what),
            // A handler that is to go on: others have been refused for it.
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
            // Those behind it in its lane wait for their turn.
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

    /// The oldest over 2 s whose lease could be stepped on, and who is not paused (CC-3b).
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

    /// Who is in line after a change.
    pub(super) fn after(&mut self, table: &Table<'a>, change: &'a Permits, at_us: u64) {
        match change.what.as_str() {
            "queue" => drop(self.waits.insert(change.ticket, Waits::of(table, change, at_us))),
            "grant" | "resume" | "cancel" | "refuse" => drop(self.waits.remove(&change.ticket)),
            _ => {}
        }
        (self.at_us, self.last) = (at_us, Some(change));
    }
}
