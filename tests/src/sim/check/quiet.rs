//! TS-3, I16: nothing gets stuck; I3: no permit is held when nothing runs.

use super::{Traces, Violation};
use crate::sim::{Fact, HandlerStep, program::Index};
use std::collections::BTreeSet;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut left: BTreeSet<u32> = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for entry in traces.entries {
        match &entry.fact {
            Fact::Stuck(dump) => violations.push(Violation::new("TS-3", format!("stuck: {dump}"))),
            Fact::Quiet(pools) => {
                let held = pools.iter().filter(|pool| pool.running + pool.queued > 0);
                violations.extend(held.map(|pool| {
                    Violation::new("I3", format!("permits held although all work is done: {pool:?}"))
                }));
            }
            Fact::Handler(node, HandlerStep::Started) => drop(left.insert(*node)),
            Fact::Handler(node, HandlerStep::Ended) => drop(left.remove(node)),
            Fact::Results(batch, _)
            | Fact::Drop(batch)
            | Fact::TakenUp(batch, _)
            | Fact::GivenUp(batch)
            | Fact::NotResumed(batch, _) => drop(answered.insert(*batch)),
            _ => {}
        }
    }
    if traces.is_finished {
        violations.extend(
            left.iter().map(|node| Violation::new("I10", format!("c{node} still runs after the shutdown"))),
        );
        let turns = index
            .batches
            .iter()
            .filter(|(batch, placed)| placed.parent.is_none() && !answered.contains(batch));
        violations
            .extend(turns.map(|(batch, _)| Violation::new("I1", format!("batch c{batch} has no results"))));
    }
    violations
}
