//! Checks the permit trace by replaying every change of the admission table under a simple reading of the rules.

mod handlers;
mod table;
#[cfg(test)]
mod tests;
mod turns;
mod waiters;

use super::{Traces, Violation};
use crate::sim::{Fact, PermitChange, program::Index};
use table::Table;
use turns::Turns;
use waiters::Waiters;

/// Checks I3, I4 and CC-7 (`table.rs`), CC-3, CC-3b and CC-8 (`waiters.rs`), I12 (`turns.rs`), I11 (`handlers.rs`).
pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let (mut table, mut waiters, mut turns) = (Table::default(), Waiters::default(), Turns::default());
    let mut held = handlers::PermitCheck::default();
    let mut violations = Vec::new();
    for entry in traces.entries {
        if let Fact::Permits(change) = &entry.fact {
            let at_us = entry.at_us;
            let mut broken = |rule, what: String| {
                violations.push(Violation::new(rule, format!("at {at_us} us {what}: {change:?}")));
            };
            waiters.before(&table, change, &mut broken);
            turns.before(&table, &waiters, change, at_us, &mut broken);
            table.change(change, &mut broken);
            waiters.after(&table, change, at_us);
        }
        violations.extend(held.next(index, &table, entry));
        // One fault causes many violations.
        if violations.len() > 5 {
            return violations;
        }
    }
    if traces.is_finished {
        violations.extend(
            table.still_held().map(|what| Violation::new("I3", format!("after the shutdown, {what}"))),
        );
    }
    violations
}

/// Receives violations: the rule and what was observed.
type Broken<'a> = dyn FnMut(&'static str, String) + 'a;

/// The resources that are needed all at once, as reported.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Need<'a> {
    units: Vec<&'a str>,
    lease: Option<&'a str>,
}

impl<'a> Need<'a> {
    fn of(change: &'a PermitChange) -> Self {
        let units = change.units.iter().map(|unit| unit.name.as_str()).collect();
        Self { units, lease: change.lease.as_deref() }
    }

    /// The resources that the other needs as well.
    fn shared(&self, other: &Self) -> impl Iterator<Item = &'a str> {
        let units = self.units.iter().filter(|unit| other.units.contains(unit)).copied();
        units.chain(self.lease.filter(|_| self.lease == other.lease))
    }
}
