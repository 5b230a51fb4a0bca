//! I12: a waiter that could be granted is passed by a bounded number of others.

use super::{Broken, Line, Need, Table};
use crate::sim::Permits;
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
        line: &Line<'a>,
        change: &'a Permits,
        at_us: u64,
        broken: &mut Broken<'_>,
    ) {
        if matches!(change.what.as_str(), "grant" | "cancel" | "refuse") {
            self.passed.remove(&change.ticket);
        }
        let Some(root) = change.root.filter(|_| change.what == "grant") else { return };
        let need = Need::of(change);
        let aged = line.aged(table, at_us);
        if let Some(aged) = aged.filter(|aged| *aged != change.ticket) {
            Self::leaves(table, line, aged, &need, broken);
        }
        for (ticket, waits) in line.waits.iter().filter(|(ticket, _)| **ticket != change.ticket) {
            let shared: Vec<_> = need.shared(&waits.need).collect();
            if shared.is_empty() || waits.root.is_none() {
                continue;
            }
            if waits.root == Some(root) {
                self.passed.remove(ticket);
                continue;
            }
            if aged.is_some() || !line.is_head(*ticket) || !table.has(&waits.need, waits.holder, None) {
                continue;
            }
            let passed = self.passed.entry(*ticket).or_default();
            for thing in shared {
                let times = passed.entry((root, thing)).or_default();
                *times += 1;
                if *times > change.weight.unwrap_or(1) as usize {
                    broken(
                        "I12",
                        format!("{ticket} could go and is passed by session {root} {times} times at {thing}"),
                    );
                }
            }
        }
    }

    /// Checks that a call granted before an aged waiter leaves that waiter one of each resource (CC-3b).
    fn leaves(table: &Table<'_>, line: &Line<'_>, aged: u64, need: &Need<'_>, broken: &mut Broken<'_>) {
        let waits = &line.waits[&aged];
        let is_last = |name: &&&str| table.units.get(*name).is_some_and(|unit| unit.in_use + 1 >= unit.width);
        let last = need.units.iter().filter(|name| waits.need.units.contains(name)).find(is_last);
        if let Some(name) = last {
            broken("I12", format!("{aged} has waited for long and is not left {name}"));
        }
        if need.lease.is_some() && need.lease == waits.need.lease {
            broken("I12", format!("{aged} has waited for long and is not left its lease"));
        }
    }
}
