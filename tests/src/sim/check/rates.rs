//! RT-10: in any period, no more attempts start than rate and burst allow; RT-3: no attempt starts in a pause that a
//! remote asked for.

use super::{Traces, Violation, retries::hint, traces::AttemptTrace};
use crate::sim::program::Index;
use toolyard::{ErrorKind, Rate};

/// The longest pause that a remote may impose, in milliseconds.
const PAUSE_MAX_MS: u64 = 300_000;
/// The event of an attempt, with its queue time in milliseconds, may come this long after its permits are granted.
const EVENT_LAG_US: u64 = 10_000;

/// The start of an attempt, and the earliest time at which it may have asked for its token.
struct Start {
    node: u32,
    asked_us: u64,
    at_us: u64,
}

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (at, tool) in index.program.tools.iter().enumerate() {
        if !index.waits_for_tokens(at) {
            continue;
        }
        let starts = starts(index, traces, at);
        violations.extend(tool.guards.rate.and_then(|rate| over_rate(&starts, rate)));
        violations.extend(in_pauses(index, traces, at, &starts));
    }
    violations
}

fn starts(index: &Index<'_>, traces: &Traces<'_>, tool: usize) -> Vec<Start> {
    let mut starts = Vec::new();
    let call_traces =
        traces.calls.iter().filter(|(node, _)| index.nodes.get(node).is_some_and(|it| it.call.tool == tool));
    for (node, trace) in call_traces {
        let mut before: Option<&AttemptTrace> = None;
        for it in &trace.attempts {
            let after_delay = before.and_then(|it| Some(it.closed?.0 + it.retry?.0 * 1000));
            // When an attempt that takes over a flight asked for its token is unknown.
            let first = trace
                .ready_us()
                .filter(|_| it.number == 1)
                .map(|ready_us| ready_us.saturating_sub(EVENT_LAG_US));
            let asked_us = after_delay.or(first).unwrap_or(0);
            starts.push(Start { node: *node, asked_us, at_us: it.at_us });
            before = Some(it);
        }
    }
    starts.sort_by_key(|start| start.at_us);
    starts
}

/// Checks the rate. An attempt takes its token between its arrival and its start, so in any period no more attempts
/// may both arrive and start than there are tokens.
fn over_rate(starts: &[Start], rate: Rate) -> Option<Violation> {
    let interval_us = rate.interval().as_micros() as u64;
    starts.iter().find_map(|first| {
        let from_us = first.asked_us;
        let within = starts.iter().filter(|start| start.asked_us >= from_us);
        within.enumerate().find_map(|(before, start)| {
            let most = u64::from(rate.burst().get()) + (start.at_us - from_us) / interval_us;
            (before as u64 + 1 > most).then(|| {
                let what = format!(
                    "from {from_us} us to {} us {} attempts started; {rate} allows {most}",
                    start.at_us,
                    before + 1
                );
                Violation::new("RT-10", what)
            })
        })
    })
}

fn in_pauses(index: &Index<'_>, traces: &Traces<'_>, tool: usize, starts: &[Start]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let call_traces =
        traces.calls.iter().filter(|(node, _)| index.nodes.get(node).is_some_and(|it| it.call.tool == tool));
    for (node, trace) in call_traces {
        for it in &trace.attempts {
            let (Some(hint_ms), Some((said_us, _)), Some((closed_us, _))) = (hint(it), it.end, it.closed)
            else {
                continue;
            };
            // A handler that was cancelled by then does not impose a pause.
            let is_imposed =
                it.retry.is_some() || trace.end.is_some_and(|end| end.code == Some(ErrorKind::RateLimited));
            let until_us = said_us + hint_ms.min(PAUSE_MAX_MS) * 1000;
            let early = starts
                .iter()
                .find(|start| is_imposed && start.asked_us > closed_us && start.at_us < until_us);
            violations.extend(early.map(|start| {
                let what = format!(
                    "c{} started at {} us, in the pause until {until_us} us that c{node} was asked for",
                    start.node, start.at_us
                );
                Violation::new("RT-3", what)
            }));
        }
    }
    violations
}
