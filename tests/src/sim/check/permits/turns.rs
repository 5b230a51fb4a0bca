//! I12: a waiter that could be granted is passed by a bounded number of others.

use super::{Broken, Need, Table, Waiters};
use crate::sim::PermitChange;
use std::collections::BTreeMap;

/// For each waiter: how often it could have been granted when a call of another session was, by that session and by
/// each resource that both need.
#[derive(Debug, Default)]
pub(super) struct Turns<'a> {
    passed: BTreeMap<u64, BTreeMap<(u64, &'a str), usize>>,
}

impl<'a> Turns<'a> {
    /// Checks a grant before it is applied.
    ///
    /// Sessions take turns for each resource (CC-3): until its own session is granted again, a waiter that could be
    /// granted is passed by another session at most as often as that session's priority allows, for each resource
    /// that both need. Waiters older than 2 s go first (CC-3b).
    pub(super) fn before(
        &mut self,
        table: &Table<'_>,
        waiters: &Waiters<'a>,
        change: &'a PermitChange,
        at_us: u64,
        broken: &mut Broken<'_>,
    ) {
        if matches!(change.what.as_str(), "grant" | "cancel" | "refuse") {
            self.passed.remove(&change.ticket);
        }
        let Some(root) = change.root.filter(|_| change.what == "grant") else { return };
        let need = Need::of(change);
        let aged = waiters.aged(table, at_us);
        if let Some(aged) = aged.filter(|aged| *aged != change.ticket) {
            Self::leaves(table, waiters, aged, &need, broken);
        }
        for (ticket, waiter) in waiters.by_ticket.iter().filter(|(ticket, _)| **ticket != change.ticket) {
            let shared: Vec<_> = need.shared(&waiter.need).collect();
            if shared.is_empty() || waiter.root.is_none() {
                continue;
            }
            if waiter.root == Some(root) {
                self.passed.remove(ticket);
                continue;
            }
            if aged.is_some()
                || !waiters.is_head(*ticket)
                || !table.can_grant(&waiter.need, waiter.holder, None)
            {
                continue;
            }
            let passed = self.passed.entry(*ticket).or_default();
            for thing in shared {
                let times = passed.entry((root, thing)).or_default();
                *times += 1;
                if *times > change.weight.unwrap_or(1) as usize {
                    broken(
                        "I12",
                        format!(
                            "ticket {ticket} could be granted but session {root} passed it {times} times at {thing}"
                        ),
                    );
                }
            }
        }
    }

    /// Checks that a call granted before an aged waiter leaves that waiter one of each resource (CC-3b).
    fn leaves(table: &Table<'_>, waiters: &Waiters<'_>, aged: u64, need: &Need<'_>, broken: &mut Broken<'_>) {
        let waiter = &waiters.by_ticket[&aged];
        let is_last = |name: &&&str| table.units.get(*name).is_some_and(|unit| unit.in_use + 1 >= unit.width);
        let last = need.units.iter().filter(|name| waiter.need.units.contains(name)).find(is_last);
        if let Some(name) = last {
            broken("I12", format!("ticket {aged} is aged but the last {name} goes to another call"));
        }
        if need.lease.is_some() && need.lease == waiter.need.lease {
            broken("I12", format!("ticket {aged} is aged but its lease goes to another call"));
        }
    }
}
