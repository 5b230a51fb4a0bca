//! Compares the writes of serial handlers with one-by-one execution.

use super::{Traces, Violation};
use crate::sim::{
    Fact, HandlerStep,
    program::{Index, Owner},
};
use std::collections::BTreeMap;
use toolyard::{Routing, ToolClass};

/// Checks that the serial calls of a batch, including those nested under its calls, write in one-by-one order. Calls
/// of one run and batches side by side have no order.
pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut written: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in traces.entries {
        let Fact::Handler(node, HandlerStep::Wrote) = entry.fact else { continue };
        if index.nodes.get(&node).is_none_or(|it| it.class() != Some(ToolClass::Serial)) {
            continue;
        }
        for above in index.lineage(node) {
            let batch = index.nodes.get(&above).map(|it| it.batch);
            written.entry(batch.unwrap_or(above)).or_default().push(node);
        }
    }
    let model = one_by_one(index);
    written.iter().filter_map(|(batch, actual)| differs(index, *batch, actual, &model)).collect()
}

/// The serial calls of a program, in the order in which they write one by one.
fn one_by_one(index: &Index<'_>) -> Vec<u32> {
    let mut order = Vec::new();
    let turns = index.batches.values().filter(|placed| matches!(placed.owner, Owner::Turn(_)));
    for placed in turns.filter(|placed| placed.parent.is_none()) {
        play(placed.plan, &mut order);
    }
    order
}

/// Plays a batch one by one. A handler's nested batches come before its own write.
fn play(batch: &crate::sim::program::BatchPlan, order: &mut Vec<u32>) {
    for call in &batch.calls {
        call.script.batches().for_each(|nested| play(nested, order));
        order.push(call.node);
    }
}

/// Compares by the run of the batch that each write belongs to.
fn differs(index: &Index<'_>, batch: u32, actual: &[u32], model: &[u32]) -> Option<Violation> {
    let run = |node: &u32| {
        index
            .lineage(*node)
            .filter_map(|above| index.nodes.get(&above))
            .find(|it| it.batch == batch)
            .map(|it| it.run)
    };
    // A call with several attempts may write several times.
    let times = |node: &u32| actual.iter().filter(|it| *it == node).count();
    let expected = model.iter().flat_map(|node| std::iter::repeat_n(run(node), times(node)));
    if expected.eq(actual.iter().map(run)) {
        return None;
    }
    let routing = |node: &u32| index.nodes.get(node).map_or(Routing::ShortCircuit, |it| it.routing).as_str();
    let actual: Vec<_> = actual.iter().map(|node| format!("c{node} ({})", routing(node))).collect();
    Some(Violation::new("CL-3", format!("batch c{batch} wrote out of order: {}", actual.join(", "))))
}
