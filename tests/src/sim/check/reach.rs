//! PO-1b, CL-7: no handler runs for an agent that may not call its tool; a fork may do no more than agents above it.

use super::{Traces, Violation};
use crate::sim::{HandlerStep, program::Index};

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, trace) in &traces.calls {
        let Some(node) = index.nodes.get(number).filter(|_| trace.first_time(HandlerStep::Started).is_some())
        else {
            continue;
        };
        let (tool, needs_none) = (node.call.tool, node.tool.is_some_and(|tool| tool.needs_no_capability));
        let mut above = index.agents_above(node.agent);
        if above.any(|agent| agent.hidden.contains(&tool) || (!needs_none && agent.barred.contains(&tool))) {
            violations.push(Violation::new(
                "PO-1b",
                format!("c{number} ran although its agent may not call its tool"),
            ));
        }
    }
    violations
}
