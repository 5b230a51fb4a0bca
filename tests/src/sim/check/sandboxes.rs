//! SM-3: a call whose sandbox failed before it started has not started, and the effect of one whose sandbox failed under
//! it is unknown, unless its tool only reads.

use super::{Traces, Violation};
use crate::sim::{
    HandlerEnd,
    program::{End, Index},
};
use toolyard::{Effect, ErrorKind, ToolClass};

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, trace) in &traces.calls {
        let Some(tool) = index.nodes.get(number).and_then(|node| node.tool) else { continue };
        let Some((_, failure)) = trace.failure().filter(|(_, it)| it.code == ErrorKind::SandboxError) else {
            continue;
        };
        let Some(last) = trace.attempts.last() else { continue }; // it shares the end of another call
        let mut broken = |what: String| violations.push(Violation::new("SM-3", format!("c{number} {what}")));
        let (outcome, attempts) = (failure.outcome, failure.attempts);
        match last.end {
            Some((_, HandlerEnd::Scripted(End::NoSandbox))) => {
                if attempts + 1 != last.number {
                    broken(format!("counts {attempts} attempts, but attempt {} did not start", last.number));
                }
                if (outcome == Effect::NotStarted) != (attempts == 0) {
                    broken(format!("ran {attempts} times, and its outcome is {outcome:?}"));
                }
            }
            Some((_, HandlerEnd::Scripted(End::SandboxGone))) => {
                let only_reads = tool.class == ToolClass::Read;
                let expected = if only_reads { Effect::Failed } else { Effect::Unknown };
                if (outcome, attempts) != (expected, last.number) {
                    broken(format!("lost its sandbox, but its outcome is {outcome:?} after {attempts}"));
                }
            }
            end => broken(format!("blames its sandbox, but its attempt ended with {end:?}")),
        }
    }
    violations
}
