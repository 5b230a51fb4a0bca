//! TS-3, I16: nothing gets stuck; I3: no permit is held when nothing runs.

use super::{Seen, Violation};
use crate::sim::{Fact, Moved, program::Index};
use std::collections::BTreeSet;

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut left: BTreeSet<u32> = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for entry in seen.entries {
        match &entry.fact {
            Fact::Stuck(dump) => violations.push(Violation::new("TS-3", format!("stuck: {dump}"))),
            Fact::Quiet(pools) => {
                let held = pools.iter().filter(|pool| pool.running + pool.queued > 0);
                violations
                    .extend(held.map(|pool| Violation::new("I3", format!("held when quiet: {pool:?}"))));
            }
            Fact::Handler(node, Moved::Began) => drop(left.insert(*node)),
            Fact::Handler(node, Moved::Ended) => drop(left.remove(node)),
            Fact::Results(batch, _) | Fact::Drop(batch) => drop(answered.insert(*batch)),
            _ => {}
        }
    }
    if seen.is_over {
        violations
            .extend(left.iter().map(|node| Violation::new("I10", format!("c{node} runs when all is over"))));
        let turns = index
            .batches
            .iter()
            .filter(|(batch, placed)| placed.parent.is_none() && !answered.contains(batch));
        violations.extend(
            turns.map(|(batch, _)| Violation::new("I1", format!("batch c{batch} was never answered"))),
        );
    }
    violations
}
