//! I1, I14, SC-3: every call that ran was called, and is not reported as not started.

use super::{Seen, Violation};
use crate::sim::{Moved, program::Index};
use toolyard::EventKind;

pub(super) fn check(_: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, life) in &seen.calls {
        let mut broken =
            |rule, what: &str| violations.push(Violation::new(rule, format!("c{number} {what}")));
        let began = life.moves.iter().filter(|(_, moved)| *moved == Moved::Began).count();
        if began > life.tries.len() {
            broken("I1", "ran more often than it was told of");
        }
        let was_called =
            life.events.iter().any(|(_, _, event)| matches!(event.kind, EventKind::Called { .. }));
        if began > 0 && !was_called {
            broken("I14", "ran without being called");
        }
        if began > 0 && life.failure().is_some_and(|(_, failure)| failure.attempts == 0) {
            broken("SC-3", "ran and is told of as not started");
        }
    }
    violations
}
