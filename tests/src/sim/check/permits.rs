//! Checks the permit trace by replaying every change of the admission table under a simple reading of the rules.

mod floor;
mod line;
mod table;
#[cfg(test)]
mod tests;
mod turns;

use super::{Seen, Violation};
use crate::sim::{Fact, Permits, program::Index};
use line::Line;
use table::Table;
use turns::Turns;

/// Checks I3, I4 and CC-7 (`table.rs`), CC-3, CC-3b and CC-8 (`line.rs`), I12 (`turns.rs`), I11 (`floor.rs`).
pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let (mut table, mut line, mut turns) = (Table::default(), Line::default(), Turns::default());
    let mut floor = floor::Compare::default();
    let mut violations = Vec::new();
    for entry in seen.entries {
        if let Fact::Permits(change) = &entry.fact {
            let at_us = entry.at_us;
            let mut broken = |rule, what: String| {
                violations.push(Violation::new(rule, format!("at {at_us} us {what}: {change:?}")));
            };
            line.before(&table, change, &mut broken);
            turns.before(&table, &line, change, at_us, &mut broken);
            table.change(change, &mut broken);
            line.after(&table, change, at_us);
        }
        violations.extend(floor.next(index, &table, entry));
        // One fault causes many violations.
        if violations.len() > 5 {
            return violations;
        }
    }
    if seen.is_over {
        violations.extend(table.left().map(|what| Violation::new("I3", format!("when all is over {what}"))));
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
    fn of(change: &'a Permits) -> Self {
        let units = change.units.iter().map(|unit| unit.name.as_str()).collect();
        Self { units, lease: change.lease.as_deref() }
    }

    /// The resources that the other needs as well.
    fn shared(&self, other: &Self) -> impl Iterator<Item = &'a str> {
        let units = self.units.iter().filter(|unit| other.units.contains(unit)).copied();
        units.chain(self.lease.filter(|_| self.lease == other.lease))
    }
}
