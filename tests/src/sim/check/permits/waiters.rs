//! The waiters: every waiter that could be granted was (CC-3), except for what is held back for the oldest (CC-3b),
//! and no call waits for a lease that it may not wait for (CC-8).

use super::{Broken, Need, Table};
use crate::sim::{PermitChange, check::SLACK_US};
use std::collections::BTreeMap;

/// Waiters older than this go first.
pub(super) const AGED_US: u64 = 2_000_000;

/// A waiter.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
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

impl<'a> Waiter<'a> {
    fn of(table: &Table<'a>, change: &'a PermitChange, since_us: u64) -> Self {
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
    fn is_same_lane(&self, other: &Self) -> bool {
        let key = |it: &Self| (it.root, it.entry, it.depth, it.holder, it.may_not_wait);
        key(self) == key(other) && self.need == other.need
    }

    fn could_push(&self, table: &Table<'_>) -> bool {
        self.need.lease.is_none_or(|lease| table.may_push(lease, self.holder))
    }
}

/// The waiters by ticket.
#[derive(Debug, Default)]
pub(super) struct Waiters<'a> {
    pub(super) by_ticket: BTreeMap<u64, Waiter<'a>>,
    /// The time of the last change.
    at_us: u64,
    /// The last change, to recognise the changes that belong to it.
    last: Option<&'a PermitChange>,
    /// Since when the calls are granted that a change of a pool or the serial leases has unblocked, in slices: until
    /// then, some that could start wait (CC-3).
    slices_since_us: Option<u64>,
    /// A lease that was refused to a call although, by the trace so far, it could still be pushed.
    refused: Option<&'a str>,
}

impl<'a> Waiters<'a> {
    /// Checks the table before its next change: no waiter may be left that could be granted.
    pub(super) fn before(&mut self, table: &Table<'a>, change: &'a PermitChange, broken: &mut Broken<'_>) {
        if let Some(lease) = self.refused.take() {
            // A handler that wants to resume no longer lends its lease; the trace shows that a moment later.
            let resumes = change.what == "queue" && change.entry.as_deref() == table.top(lease);
            if !resumes && change.what == "refuse" {
                self.refused = Some(lease);
            } else if !resumes {
                broken("CC-8", format!("a call was refused {lease} although it could get it, before"));
            }
        }
        if self.is_settled(change) {
            self.check_none_grantable(table, broken);
        }
        if change.what == "refuse" {
            self.refuse(table, change, broken);
        }
    }

    /// Whether this change starts a new step instead of belonging to the last one.
    fn is_settled(&self, change: &PermitChange) -> bool {
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

    fn check_none_grantable(&mut self, table: &Table<'a>, broken: &mut Broken<'_>) {
        let aged = self.aged(table, self.at_us);
        let mut waits = None;
        for (ticket, waiter) in &self.by_ticket {
            let held_back = aged.filter(|aged| aged != ticket).and_then(|aged| self.by_ticket.get(&aged));
            let is_grantable = match waiter.root {
                Some(_) => table.can_grant(&waiter.need, waiter.holder, held_back.map(|it| &it.need)),
                None => table.can_resume(&waiter.need, waiter.entry),
            };
            // Calls behind the head of their lane wait for their turn.
            if is_grantable && self.is_head(*ticket) {
                waits = Some(ticket);
            }
            if waiter.may_not_wait && !waiter.could_push(table) {
                broken(
                    "CC-8",
                    format!("ticket {ticket} waits for a lease although it may not, {waiter:?}, before"),
                );
            }
        }
        let in_slices = self.slices_since_us.is_some_and(|since_us| self.at_us < since_us + SLACK_US);
        match waits {
            None => self.slices_since_us = None,
            Some(ticket) if !in_slices => {
                let waiter = &self.by_ticket[ticket];
                let what = format!("ticket {ticket} waits although it could be granted, {waiter:?}, before");
                broken("CC-3", what);
            }
            Some(_) => {}
        }
    }

    pub(super) fn is_head(&self, ticket: u64) -> bool {
        let waiter = &self.by_ticket[&ticket];
        self.by_ticket.range(..ticket).all(|(_, other)| !other.is_same_lane(waiter))
    }

    /// The oldest unpaused waiter over 2 s whose lease, if it needs one, could be pushed (CC-3b).
    pub(super) fn aged(&self, table: &Table<'_>, now_us: u64) -> Option<u64> {
        let is_paused = |waiter: &Waiter<'_>| match waiter.need.lease {
            Some(_) => table.serial_paused,
            None => waiter
                .need
                .units
                .iter()
                .filter(|name| name.starts_with("class"))
                .any(|name| table.units.get(name).is_some_and(|unit| unit.paused)),
        };
        let qualifies = |waiter: &Waiter<'_>| {
            waiter.root.is_some()
                && now_us.saturating_sub(waiter.since_us) > AGED_US
                && !is_paused(waiter)
                && waiter.could_push(table)
        };
        self.by_ticket.iter().find(|(_, waiter)| qualifies(waiter)).map(|(ticket, _)| *ticket)
    }

    fn refuse(&mut self, table: &Table<'a>, change: &'a PermitChange, broken: &mut Broken<'_>) {
        let asks = Waiter::of(table, change, 0);
        let waiter = if change.ticket > 0 { self.by_ticket.get(&change.ticket) } else { Some(&asks) };
        let Some(waiter) = waiter else { return };
        if !waiter.may_not_wait {
            broken("CC-8", "a call that may wait is refused".to_owned());
        }
        if waiter.could_push(table) {
            self.refused = waiter.need.lease;
        }
    }

    /// Updates the waiters after a change.
    pub(super) fn after(&mut self, table: &Table<'a>, change: &'a PermitChange, at_us: u64) {
        match change.what.as_str() {
            "queue" => drop(self.by_ticket.insert(change.ticket, Waiter::of(table, change, at_us))),
            "grant" | "resume" | "cancel" | "refuse" => drop(self.by_ticket.remove(&change.ticket)),
            "resize" | "pause" => self.slices_since_us = Some(at_us),
            _ => {}
        }
        (self.at_us, self.last) = (at_us, Some(change));
    }
}
