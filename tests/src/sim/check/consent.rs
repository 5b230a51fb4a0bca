//! I14: nothing runs without the policy's allow and, where asked, a yes; SC-3: what did not start did not run.

use super::{Seen, Violation, seen::Life};
use crate::sim::{
    Moved,
    program::{Consent, Index},
};
use toolyard::EventKind;

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, life) in &seen.calls {
        let mut broken =
            |rule, what: &str| violations.push(Violation::new(rule, format!("c{number} {what}")));
        let began = life.moves.iter().filter(|(_, moved)| *moved == Moved::Began).count();
        if began > life.tries.len() {
            broken("I1", "ran more often than it was told of");
        }
        if began > 0 && !has(life, |kind| matches!(kind, EventKind::Called { .. })) {
            broken("I14", "ran without being called");
        }
        let tool = index.nodes.get(number).and_then(|node| node.tool);
        let asked = tool.is_some_and(|tool| tool.consent == Consent::Asked);
        let approved =
            |kind: &EventKind| matches!(kind, EventKind::ConfirmationResolved { approved: true, .. });
        if began > 0 && asked && !has(life, approved) {
            broken("I14", "ran without a yes");
        }
        let not_started = |kind: &EventKind| kind.failure().is_some_and(|failure| failure.attempts == 0);
        if began > 0 && has(life, not_started) {
            broken("SC-3", "ran and is told of as not started");
        }
    }
    violations
}

fn has(life: &Life<'_>, is_it: impl Fn(&EventKind) -> bool) -> bool {
    life.events.iter().any(|(_, _, event)| is_it(&event.kind))
}
