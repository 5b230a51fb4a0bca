//! CL-7: an agent that a handler made is of no use once the handler's call has ended.

use super::{Traces, Violation};
use crate::sim::{
    Fact, HandlerStep,
    program::{ForkPlan, Index, Node, Owner, Step},
};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let is_late = |node: &&Node<'_>| index.agents[node.agent].late;
    for node in index.nodes.values().filter(is_late) {
        let number = node.call.node;
        let mut broken =
            |what: String| violations.push(Violation::new("CL-7", format!("c{number} {what}, too late")));
        let Some(trace) = traces.calls.get(&number) else { continue };
        if trace.first_time(HandlerStep::Started).is_some() {
            broken("ran".to_owned());
        }
        match trace.failure() {
            None if trace.end.is_some() => broken("succeeded".to_owned()),
            Some((_, failure)) if failure.attempts > 0 => broken("is reported as run".to_owned()),
            _ => {}
        }
    }
    violations.extend(forks(index, traces));
    if traces.is_finished {
        let played = played(traces);
        let late = index.batches.iter().filter(|(_, placed)| {
            let is_of_a_turn = matches!(placed.owner, Owner::Turn(_));
            let fork = index.agents[placed.agent].fork;
            is_of_a_turn && fork.is_some_and(|number| played.contains(&number))
        });
        let lost =
            late.filter(|(batch, _)| !traces.results.contains_key(batch) && !is_dropped(traces, **batch));
        violations.extend(
            lost.map(|(batch, _)| Violation::new("I1", format!("batch c{batch}, too late, has no results"))),
        );
    }
    violations
}

/// The forks that have begun to be played too late.
fn played(traces: &Traces<'_>) -> BTreeSet<u32> {
    let late = traces.entries.iter().filter_map(|entry| match entry.fact {
        Fact::PlayedLate(number) => Some(number),
        _ => None,
    });
    late.collect()
}

fn is_dropped(traces: &Traces<'_>, batch: u32) -> bool {
    traces.entries.iter().any(|entry| matches!(entry.fact, Fact::Drop(it) if it == batch))
}

/// Checks that forks were refused if, and only if, their handler's call had ended.
fn forks(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let (makers, mut late) = (makers(index), BTreeSet::new());
    for (place, entry) in traces.entries.iter().enumerate() {
        let mut broken = |what: String| {
            let what = format!("at {} us {what}", entry.at_us);
            violations.push(Violation::new("CL-7", what));
        };
        match entry.fact {
            Fact::PlayedLate(number) => drop(late.insert(number)),
            Fact::Forked(number, above) if above.is_some_and(|above| late.contains(&above)) => {
                broken(format!("agent {number} is made by an agent whose call has ended"));
            }
            Fact::ForkRefused(number, above) if above.is_none_or(|above| !late.contains(&above)) => {
                let maker = makers.get(&number).and_then(|node| traces.calls.get(node));
                let ended =
                    maker.and_then(|trace| trace.events.iter().find(|(_, _, it)| it.kind.is_terminal()));
                if ended.is_none_or(|(ended, _, _)| *ended > place) {
                    broken(format!("agent {number} is refused although its call has not ended"));
                }
            }
            _ => {}
        }
    }
    violations
}

/// The call whose handler makes each fork.
fn makers(index: &Index<'_>) -> BTreeMap<u32, u32> {
    fn all(fork: &ForkPlan, node: u32, found: &mut BTreeMap<u32, u32>) {
        found.insert(fork.number, node);
        fork.forks.iter().for_each(|fork| all(fork, node, found));
    }
    let mut found = BTreeMap::new();
    for (node, it) in &index.nodes {
        for step in &it.call.script.steps {
            if let Step::Fork(fork) = step {
                all(fork, *node, &mut found);
            }
        }
    }
    found
}
