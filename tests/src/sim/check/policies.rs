//! I14: nothing starts that the policy in force does not allow, and the events about it are true.

use super::{
    Traces, Violation,
    in_force::{Allows, InForce},
    traces::CallTrace,
};
use crate::sim::{
    Fact,
    program::{Index, Node},
};
use toolyard::EventKind;

/// A few naps may lie between the last check of the policy, with the permits, and the `called` event.
pub(super) const START_US: u64 = 20_000;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let in_force = InForce::of(index, traces);
    let mut violations = changes(traces, &in_force);
    for (number, trace) in &traces.calls {
        let Some(node) = index.nodes.get(number) else { continue };
        let found = of_call(index, &in_force, node, trace);
        violations.extend(found.map(|what| Violation::new("I14", format!("c{number} {what}"))));
    }
    violations
}

/// Checks that each change is reported once, with its version.
fn changes(traces: &Traces<'_>, in_force: &InForce<'_>) -> Vec<Violation> {
    let reported = traces.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::Event(event) => match event.kind {
            EventKind::PolicyChanged { version } => Some(version),
            _ => None,
        },
        _ => None,
    });
    let reported: Vec<_> = reported.collect();
    let wrong = reported != (2..=in_force.count()).collect::<Vec<_>>();
    let what = || {
        Violation::new(
            "PO-1",
            format!(
                "{} policies were in force, but the events report versions {reported:?}",
                in_force.count()
            ),
        )
    };
    wrong.then(what).into_iter().collect()
}

fn of_call(
    index: &Index<'_>,
    in_force: &InForce<'_>,
    node: &Node<'_>,
    trace: &CallTrace<'_>,
) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    let tool = node.call.tool;
    for (place, at_us, event) in &trace.events {
        let EventKind::Called { policy_version, .. } = event.kind else { continue };
        let Some(policy) = in_force.version(policy_version).filter(|since| since.place <= *place) else {
            found.push(format!("was called under policy {policy_version}, which was never in force"));
            continue;
        };
        if !policy.plan.allows(tool) {
            found.push(format!("was called under policy {policy_version}, which denies it"));
        }
        if let Some(next) = in_force.until(policy_version).filter(|next| next.at_us + START_US < *at_us) {
            let (version, since) = (policy_version, next.at_us);
            found.push(format!("was called at {at_us} us under policy {version}, replaced at {since} us"));
        }
    }
    for it in &trace.attempts {
        let from_us = it.at_us.saturating_sub(START_US);
        if !in_force.between(from_us, it.place).any(|since| since.plan.allows(tool)) {
            found.push(format!(
                "started attempt {} at {} us, but no policy in force allows it",
                it.number, it.at_us
            ));
        }
    }
    if in_force.allows(index, trace, tool) == Allows::Never
        && trace.attempts.iter().any(|it| it.started.is_some())
    {
        found.push("ran although every policy of its life denies it".to_owned());
    }
    found.into_iter()
}
