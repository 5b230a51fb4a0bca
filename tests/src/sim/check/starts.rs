//! I1, I14, SC-3: every call that ran was called, and is not reported as not started.

use super::{Traces, Violation};
use crate::sim::{HandlerStep, program::Index};
use toolyard::EventKind;

pub(super) fn check(_: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, trace) in &traces.calls {
        let mut broken =
            |rule, what: &str| violations.push(Violation::new(rule, format!("c{number} {what}")));
        let starts = trace.steps.iter().filter(|(_, step)| *step == HandlerStep::Started).count();
        if starts > trace.attempts.len() {
            broken("I1", "started more often than its events report");
        }
        let was_called =
            trace.events.iter().any(|(_, _, event)| matches!(event.kind, EventKind::Called { .. }));
        if starts > 0 && !was_called {
            broken("I14", "ran without a tool.called event");
        }
        if starts > 0 && trace.failure().is_some_and(|(_, failure)| failure.attempts == 0) {
            broken("SC-3", "ran but is reported as not started");
        }
    }
    violations
}
