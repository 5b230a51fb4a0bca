//! I7: nothing of run k+1 starts before run k is quiescent, with all that is under it.

use super::{
    Seen, Violation,
    floor::{Floor, replay},
};
use crate::sim::{Fact, program::Index};
use std::collections::BTreeSet;

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut ended = BTreeSet::new();
    replay(seen, |floor, at_us, fact, starts| {
        if let Fact::Event(event) = fact
            && event.kind.is_terminal()
            && let Some(node) = node_of(event)
        {
            ended.insert(node);
        }
        if let Some(node) = starts {
            violations.extend(at_start(index, floor, &ended, at_us, node));
        }
    });
    violations
}

/// The call of an event, by its id; twins are answered before anything runs and do not matter here.
fn node_of(event: &toolyard::Event) -> Option<u32> {
    event.call_id.as_ref()?.as_str().strip_prefix('c')?.parse().ok()
}

fn at_start(
    index: &Index<'_>,
    floor: &Floor,
    ended: &BTreeSet<u32>,
    at_us: u64,
    started: u32,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for above in index.lineage(started) {
        let Some(node) = index.nodes.get(&above) else { continue };
        let earlier = |other: u32| {
            index.nodes.get(&other).is_some_and(|it| it.batch == node.batch && it.run < node.run)
        };
        for (_, running) in floor.all(index) {
            let other = running.call.node;
            if index.lineage(other).any(earlier) {
                let what =
                    format!("at {at_us} us c{started} runs in a later run than c{other}, which still runs");
                violations.push(Violation::new("I7", what));
            }
        }
        let calls = &index.batches[&node.batch].plan.calls;
        let before =
            calls.iter().filter(|call| earlier(call.node) && !call.twin && !ended.contains(&call.node));
        for call in before {
            let what = format!(
                "at {at_us} us c{started} runs before c{} of an earlier run has its result",
                call.node
            );
            violations.push(Violation::new("I7", what));
        }
    }
    violations
}
