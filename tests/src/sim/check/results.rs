//! I1, I6: one result per call, in the order of the calls, and each as its event reports it.

use super::{Traces, Violation, code_name};
use crate::sim::{Fact, ResultView, program::Index};
use toolyard::{Dedupe, ErrorKind, EventKind};

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let again = traces.resent.iter().filter(|event| matches!(event.kind, EventKind::Called { .. }));
    let mut violations: Vec<_> =
        again.map(|event| Violation::new("CL-8", format!("a resent call ran again: {event:?}"))).collect();
    for entry in traces.entries {
        if let Fact::Results(batch, results) = &entry.fact {
            of_batch(index, traces, *batch, results, &mut violations);
        }
        if let Fact::Resent(batch, before, now) = &entry.fact {
            // The run number is that of the new batch, and it may have no room for a copy of the result.
            let same = |(before, now): (&ResultView, &ResultView)| {
                let as_before = ResultView {
                    run: before.run,
                    dedupe: before.dedupe,
                    recorded: before.recorded,
                    ..now.clone()
                };
                let has_no_room = before.bytes > 0
                    && index.program.room.is_some()
                    && now.code == Some(ErrorKind::OutputTooLarge);
                (*before == as_before || has_no_room) && now.dedupe == Dedupe::Replayed
            };
            if before.len() != now.len() || !before.iter().zip(now).all(same) {
                let what = format!("resent calls of batch c{batch} had the results {before:?}, now {now:?}");
                violations.push(Violation::new("CL-8", what));
            }
        }
    }
    violations
}

fn of_batch(
    index: &Index<'_>,
    traces: &Traces<'_>,
    batch: u32,
    results: &[ResultView],
    violations: &mut Vec<Violation>,
) {
    let mut broken = |rule, what: String| violations.push(Violation::new(rule, what));
    let Some(placed) = index.batches.get(&batch) else {
        return broken("I6", format!("empty batch has results: {results:?}"));
    };
    let calls = &placed.plan.calls;
    if results.len() != calls.len() {
        broken("I6", format!("batch c{batch} has {} calls but {} results", calls.len(), results.len()));
    }
    for (call, result) in calls.iter().zip(results) {
        let node = &index.nodes[&call.node];
        if result.id != node.id() {
            broken(
                "I6",
                format!("batch c{batch} has, in place of {}, the result of {}", node.id(), result.id),
            );
        }
        match traces.end(call.node) {
            None => broken("I1", format!("c{} has a result but no terminal event", call.node)),
            Some(end) if end.code != result.code => broken(
                "I1",
                format!(
                    "c{} ended with {} in its event but {} in its result",
                    call.node,
                    code_name(end.code),
                    code_name(result.code)
                ),
            ),
            Some(_) => {}
        }
        let theirs = |peer: &u32| result.text == index.output_of(*peer);
        if result.code.is_none() && !index.peers(call.node).iter().any(theirs) && result.text != "cut short" {
            broken("I6", format!("c{} has the output of another call: {:?}", call.node, result.text));
        }
    }
}
