//! I7: nothing of run k+1 starts before run k and everything under it is quiescent.

use super::{
    Traces, Violation,
    handlers::{Handlers, node_of, replay},
    traces::{AttemptTrace, CallTrace},
};
use crate::sim::{Fact, program::Index};
use std::collections::BTreeSet;
use toolyard::Dedupe;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut ended = BTreeSet::new();
    replay(traces, |handlers, at_us, fact, starts| {
        if let Fact::Event(event) = fact
            && event.kind.is_terminal()
            && let Some(node) = node_of(event)
        {
            ended.insert(node);
        }
        if let Some(node) = starts {
            violations.extend(at_start(index, handlers, &ended, at_us, node));
            violations.extend(beside_flights(index, traces, at_us, node));
        }
    });
    violations
}

fn at_start(
    index: &Index<'_>,
    handlers: &Handlers,
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
        for (_, running) in handlers.all(index) {
            let other = running.call.node;
            if index.lineage(other).any(earlier) {
                let what =
                    format!("at {at_us} us c{started} runs while c{other} of an earlier run still does");
                violations.push(Violation::new("I7", what));
            }
        }
        let calls = &index.batches[&node.batch].plan.calls;
        let before =
            calls.iter().filter(|call| earlier(call.node) && !call.twin && !ended.contains(&call.node));
        for call in before {
            let what = format!(
                "at {at_us} us c{started} runs but c{} of an earlier run has no result yet",
                call.node
            );
            violations.push(Violation::new("I7", what));
        }
    }
    violations
}

/// Checks calls that joined a flight: they are quiescent when the flight is, and the next run waits for that even if
/// the call itself has ended (V2).
fn beside_flights(index: &Index<'_>, traces: &Traces<'_>, at_us: u64, started: u32) -> Vec<Violation> {
    let mut violations = Vec::new();
    for above in index.lineage(started).filter_map(|above| index.nodes.get(&above)) {
        let calls = index.batches[&above.batch].plan.calls.iter().map(|call| call.node);
        let earlier = calls.filter(|call| index.nodes[call].run < above.run);
        let shared =
            |call: &u32| traces.results.get(call).is_some_and(|result| result.dedupe == Dedupe::Joined);
        for call in earlier.filter(shared) {
            let Some(ended) = traces.calls.get(&call).and_then(ended_at) else { continue };
            let attempts = index.peers(call).iter().flat_map(|peer| {
                let attempts = traces.calls.get(peer).map_or(&[][..], |trace| &trace.attempts);
                attempts.iter().map(move |it| (peer, it))
            });
            let attempts: Vec<_> = attempts.filter(|(_, it)| it.place < ended).collect();
            // The handler of an earlier flight, which was given up, may still run.
            let began = attempts.iter().filter(|(_, it)| it.number == 1).map(|(_, it)| it.place).max();
            let runs = |(_, it): &&(&u32, &AttemptTrace)| {
                it.started.is_some() && Some(it.place) >= began && it.stopped_us() > at_us
            };
            if let Some((peer, _)) = attempts.iter().find(runs) {
                let what = format!(
                    "at {at_us} us c{started} runs while c{peer} still does for c{call} of an earlier run"
                );
                violations.push(Violation::new("I7", what));
            }
        }
    }
    violations
}

/// The place of a call's end.
fn ended_at(trace: &CallTrace<'_>) -> Option<usize> {
    trace.events.iter().find(|(_, _, event)| event.kind.is_terminal()).map(|(place, _, _)| *place)
}
