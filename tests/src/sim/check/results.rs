//! I1, I6: one result per call, in the order of the calls, and each as its event reports it.

use super::{Seen, Violation};
use crate::sim::{Fact, Shape, program::Index};
use toolyard::{Dedupe, EventKind};

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let again = seen.again.iter().filter(|event| matches!(event.kind, EventKind::Called { .. }));
    let mut violations: Vec<_> = again
        .map(|event| Violation::new("CL-8", format!("a call that had run runs again: {event:?}")))
        .collect();
    for entry in seen.entries {
        if let Fact::Results(batch, shapes) = &entry.fact {
            of_batch(index, seen, *batch, shapes, &mut violations);
        }
        if let Fact::Resent(batch, before, now) = &entry.fact {
            // The run number is that of the new batch.
            let same = |(before, now): (&Shape, &Shape)| {
                let as_before = Shape { run: before.run, dedupe: before.dedupe, ..now.clone() };
                *before == as_before && now.dedupe == Dedupe::Replayed
            };
            if before.len() != now.len() || !before.iter().zip(now).all(same) {
                let what = format!("calls of c{batch} that came again had {before:?} and have {now:?}");
                violations.push(Violation::new("CL-8", what));
            }
        }
    }
    violations
}

fn of_batch(
    index: &Index<'_>,
    seen: &Seen<'_>,
    batch: u32,
    shapes: &[Shape],
    violations: &mut Vec<Violation>,
) {
    let mut broken = |rule, what: String| violations.push(Violation::new(rule, what));
    let Some(placed) = index.batches.get(&batch) else {
        return broken("I6", format!("an empty batch has results: {shapes:?}"));
    };
    let calls = &placed.plan.calls;
    if shapes.len() != calls.len() {
        broken("I6", format!("batch c{batch} of {} calls has {} results", calls.len(), shapes.len()));
    }
    for (call, shape) in calls.iter().zip(shapes) {
        let node = &index.nodes[&call.node];
        if shape.id != node.id() {
            broken(
                "I6",
                format!("the place of {} in batch c{batch} has the result of {}", node.id(), shape.id),
            );
        }
        match seen.end(call.node) {
            None => broken("I1", format!("c{} has a result and no terminal event", call.node)),
            Some(end) if end.code != shape.code => broken(
                "I1",
                format!(
                    "c{} ended {:?} by its event and {:?} by its result",
                    call.node, end.code, shape.code
                ),
            ),
            Some(_) => {}
        }
        let theirs = |peer: &u32| shape.text == index.output_of(*peer);
        if shape.code.is_none() && !index.peers(call.node).iter().any(theirs) && shape.text != "cut short" {
            broken("I6", format!("c{} has the output of another: {:?}", call.node, shape.text));
        }
    }
}
