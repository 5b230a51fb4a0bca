//! PO-1b, CL-7: no handler runs for an agent that may not call its tool; a fork may do no more than agents above it.

use super::{Seen, Violation};
use crate::sim::{Moved, program::Index};

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, life) in &seen.calls {
        let Some(node) = index.nodes.get(number).filter(|_| life.when(Moved::Began).is_some()) else {
            continue;
        };
        let (tool, needs_none) = (node.call.tool, node.tool.is_some_and(|tool| tool.needs_no_capability));
        let mut above = index.agents_above(node.agent);
        if above.any(|agent| agent.hidden.contains(&tool) || (!needs_none && agent.barred.contains(&tool))) {
            violations.push(Violation::new("PO-1b", format!("c{number} ran, and its agent may not call it")));
        }
    }
    violations
}
