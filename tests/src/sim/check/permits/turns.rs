//! I12: who could go waits for a bounded number of others.

use super::{Broken, Line, Need, Table};
use crate::sim::Permits;
use std::collections::BTreeMap;

/// How often each who waits could have gone when a call of another session went, by that session.
#[derive(Debug, Default)]
pub(super) struct Turns {
    passed: BTreeMap<u64, BTreeMap<u64, usize>>,
}

impl Turns {
    /// Looks at a grant before it is made. Sessions take turns at everything there is (CC-3): until a call of its own
    /// session goes, another session goes before one who could go as often as its priority says, at each thing that
    /// both need. Who is older than 2 s goes first (CC-3b).
    pub(super) fn before(
        &mut self,
        table: &Table<'_>,
        line: &Line<'_>,
        change: &Permits,
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
            let shared = need.shares(&waits.need);
            if shared == 0 || waits.root.is_none() {
                continue;
            }
            if waits.root == Some(root) {
                self.passed.remove(ticket);
                continue;
            }
            if aged.is_some() || !line.is_head(*ticket) || !table.has(&waits.need, waits.holder, None) {
                continue;
            }
            let times = self.passed.entry(*ticket).or_default().entry(root).or_default();
            *times += 1;
            // Where a session's own calls need more, its turn may be held up there: so often for each of those things.
            let most = match shared == need.len() {
                true => shared,
                false => {
                    let own = line.waits.values().filter(|other| other.root == waits.root);
                    need.shared_with_any(&own.map(|other| &other.need).collect::<Vec<_>>())
                }
            };
            let weight = change.weight.unwrap_or(1) as usize;
            if *times > weight * most {
                broken("I12", format!("{ticket} could go and is passed by session {root} {times} times"));
            }
        }
    }

    /// A call that goes while another has waited for long leaves it one of each (CC-3b).
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
