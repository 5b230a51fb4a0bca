//! I5, ID-3, ID-3a: a keyed call that must not run twice runs once, a call that shares a result has that result and
//! says so, and no call waits for a flight that may wait for it.

use super::{
    SLACK_US, Traces, Violation, recorded_within_us,
    traces::{AttemptTrace, CallTrace},
};
use crate::sim::{
    HandlerEnd, ResultView,
    program::{Consent, End, Index, Node, Owner},
};
use toolyard::{Dedupe, Effect, ErrorKind, EventKind, ToolClass, error::Ran};

/// Times in events are truncated to milliseconds.
const ROUNDING_US: u64 = 1_000;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for group in index.keyed() {
        violations.extend(runs_once(index, traces, group));
        for number in group {
            let Some(trace) = traces.calls.get(number) else { continue };
            let caller = Caller { index, traces, group, node: &index.nodes[number], trace };
            caller
                .check(&mut |rule, what| violations.push(Violation::new(rule, format!("c{number} {what}"))));
        }
    }
    violations
}

/// Checks I5.
fn runs_once(index: &Index<'_>, traces: &Traces<'_>, group: &[u32]) -> Option<Violation> {
    let tool = index.nodes[group.first()?].tool.filter(|tool| !tool.is_repeatable())?;
    let starts = group.iter().filter_map(|node| Some((node, traces.calls.get(node)?)));
    let counts = |it: &&AttemptTrace| {
        it.started.is_some() && it.end.is_none_or(|(_, end)| end != HandlerEnd::Scripted(End::Harmless))
    };
    let starts: Vec<_> = starts
        .flat_map(|(node, trace)| trace.attempts.iter().filter(counts).map(move |_| format!("c{node}")))
        .collect();
    (starts.len() > 1).then(|| {
        let what = format!(
            "{} all ran with one key of a {} tool, which must run once",
            starts.join(", "),
            tool.class
        );
        Violation::new("I5", what)
    })
}

/// A call with a key.
struct Caller<'a> {
    index: &'a Index<'a>,
    traces: &'a Traces<'a>,
    group: &'a [u32],
    node: &'a Node<'a>,
    trace: &'a CallTrace<'a>,
}

impl Caller<'_> {
    fn check(&self, broken: &mut dyn FnMut(&'static str, String)) {
        let code = self.trace.end.and_then(|end| end.code);
        let fails = self.node.tool.is_some_and(|tool| tool.guards.key_fails);
        if code == Some(ErrorKind::KeyInProgress) && !fails && !self.may_deadlock() {
            broken("ID-3", "failed with key_in_progress although it could have waited".to_owned());
        }
        if let Some(result) = self.traces.results.get(&self.node.call.node) {
            self.check_origin(result, broken);
        }
        self.check_effect(broken);
    }

    /// Whether an ancestor holds a lease or leads a flight, so that waiting could be circular (ID-3a).
    fn may_deadlock(&self) -> bool {
        let mut above =
            self.index.lineage(self.node.call.node).skip(1).filter_map(|it| self.index.nodes.get(&it));
        above.any(|it| it.class() == Some(ToolClass::Serial) || it.call.key.is_some())
    }

    /// Checks that what the result says about its origin fits what was observed.
    fn check_origin(&self, result: &ResultView, broken: &mut dyn FnMut(&'static str, String)) {
        let ran = !self.trace.attempts.is_empty();
        let reported = self.trace.events.iter().find_map(|(_, _, event)| match event.kind {
            EventKind::Completed { dedupe, .. } => Some(dedupe),
            _ => None,
        });
        if reported.is_some_and(|reported| reported != result.dedupe) {
            broken("ID-3", format!("is {reported:?} in its event but {:?} in its result", result.dedupe));
        }
        match result.dedupe {
            Dedupe::Fresh if result.attempts > 0 && !ran && !self.took_over(result) => {
                broken("ID-3", "is reported as run although another call ran".to_owned());
            }
            Dedupe::Joined | Dedupe::Replayed | Dedupe::Reconciled if ran => {
                broken("ID-3", format!("ran but is reported as {:?}", result.dedupe));
            }
            Dedupe::Joined if self.may_deadlock() => {
                broken("ID-3a", "joined a flight that may wait for it".to_owned());
            }
            Dedupe::Fresh | Dedupe::Joined | Dedupe::Replayed | Dedupe::Reconciled => {}
        }
        if self.index.earlier.was_attempted(self.index, self.node.call.node) {
            return;
        }
        if result.dedupe == Dedupe::Fresh || result.code == Some(ErrorKind::Cancelled) {
            return;
        }
        if result.code == Some(ErrorKind::DeadlineExceeded) || result.code == Some(ErrorKind::Internal) {
            return;
        }
        match (self.source(result), result.dedupe) {
            (None, _) => {
                broken("ID-3", format!("has a result that no call with its key produced: {result:?}"))
            }
            (Some(source), Dedupe::Joined) => {
                let ended_us = self.trace.end.map_or(0, |end| end.at_us);
                // The record of a result is waited for before others of its key are given it (SM-4).
                let recorded_us = recorded_within_us(self.index);
                if let Some((produced_us, _)) = source.end
                    && ended_us > produced_us + SLACK_US + recorded_us
                    && result.code != Some(ErrorKind::Timeout)
                {
                    broken(
                        "ID-3",
                        format!("ended at {ended_us} us with a shared result of {produced_us} us"),
                    );
                }
            }
            (Some(source), _) => self.check_replay(source, result, broken),
        }
    }

    /// Whether the call may have taken over a flight after attempts of others, and ended before its own first attempt.
    fn took_over(&self, result: &ResultView) -> bool {
        let of_handlers = |code: ErrorKind| code.ran() == Ran::Yes && code != ErrorKind::RateLimited;
        if result.code.is_none_or(of_handlers) {
            return false;
        }
        let others = self.group.iter().filter_map(|node| self.traces.calls.get(node));
        let ended_us = self.trace.end.map_or(0, |end| end.at_us);
        others
            .flat_map(|trace| &trace.attempts)
            .any(|it| it.number == result.attempts && it.stopped_us() <= ended_us)
    }

    /// The latest attempt under its key that produced this result.
    fn source(&self, result: &ResultView) -> Option<&AttemptTrace> {
        let ended_us = self.trace.end?.at_us;
        let attempts = self.group.iter().filter_map(|node| Some((*node, self.traces.calls.get(node)?)));
        let attempts = attempts.flat_map(|(node, trace)| trace.attempts.iter().map(move |it| (node, it)));
        let matching =
            attempts.filter(|(node, it)| it.at_us <= ended_us && produces(self.index, *node, it, result));
        matching.map(|(_, it)| it).max_by_key(|it| it.place)
    }

    /// Checks a replay: a call whose run starts while a flight of its key is in flight must join it, whatever waits
    /// in line (ID-3).
    fn check_replay(
        &self,
        source: &AttemptTrace,
        result: &ResultView,
        broken: &mut dyn FnMut(&'static str, String),
    ) {
        let over_us = self.over_us(source, result);
        if let Some(ready_us) = self.ready_us()
            && over_us != u64::MAX
            && over_us > ready_us + ROUNDING_US
        {
            broken("ID-3", format!("was ready at {ready_us} us but got the kept result of {over_us} us"));
        }
    }

    /// When the flight of an attempt was over: when its handler stopped, or when a call got its result although a
    /// handler that was given up ran on.
    fn over_us(&self, source: &AttemptTrace, result: &ResultView) -> u64 {
        let ended = self.group.iter().filter_map(|peer| {
            let trace = self.traces.calls.get(peer)?;
            let ran_it = trace.attempts.iter().any(|it| it.place == source.place);
            // Of a call whose caller has left, the result was not seen.
            let joined = |result: &&ResultView| result.dedupe == Dedupe::Joined;
            let shared_it = self.traces.results.get(peer).map_or(trace.attempts.is_empty(), joined);
            let end = trace.end.filter(|end| end.code == result.code && end.at_us >= source.at_us)?;
            (ran_it || shared_it).then_some(end.at_us)
        });
        ended.chain([source.stopped_us()]).min().unwrap_or(u64::MAX)
    }

    /// The latest time at which it can have become ready: when the first call of its run did that needed no answer.
    fn ready_us(&self) -> Option<u64> {
        let placed = &self.index.batches[&self.node.batch];
        let streamed = matches!(placed.owner, Owner::Turn(turn) if turn.mode.gap_ms().is_some());
        let is_free = |node: &Node<'_>| node.tool.is_some_and(|tool| tool.consent == Consent::Free);
        if streamed || self.index.program.hooks || !is_free(self.node) {
            return None;
        }
        let same_run = placed.plan.calls.iter().filter_map(|call| self.index.nodes.get(&call.node));
        let same_run = same_run.filter(|node| node.run == self.node.run && is_free(node));
        same_run.filter_map(|node| self.traces.calls.get(&node.call.node)?.ready_us()).min()
    }

    /// Checks what its result says about its effect: "not started" only if nothing ran for it.
    fn check_effect(&self, broken: &mut dyn FnMut(&'static str, String)) {
        let Some((place, failure)) = self.trace.failure() else { return };
        let left = matches!(failure.code, ErrorKind::Cancelled | ErrorKind::DeadlineExceeded);
        let (Some(ready_us), true) = (self.ready_us(), left && failure.outcome == Effect::NotStarted) else {
            return;
        };
        let args = self.node.call.key;
        let peers = self.group.iter().filter(|peer| self.index.nodes[peer].call.key == args);
        let mut attempts =
            peers.filter_map(|peer| self.traces.calls.get(peer)).flat_map(|trace| &trace.attempts);
        let for_it = |it: &&AttemptTrace| {
            it.at_us > ready_us + ROUNDING_US
                && it.started.is_some_and(|(_, started)| started < place)
                && it.stopped.is_none_or(|(_, ended)| ended > place)
        };
        if let Some(it) = attempts.find(for_it) {
            broken("V5", format!("is reported as not started although its flight ran since {} us", it.at_us));
        }
    }
}

/// Whether an attempt produced this result.
fn produces(index: &Index<'_>, node: u32, it: &AttemptTrace, result: &ResultView) -> bool {
    let end = it.end.map(|(_, end)| end);
    let is = |ends: &[End]| matches!(end, Some(HandlerEnd::Scripted(end)) if ends.contains(&end));
    match result.code {
        None => match end {
            Some(HandlerEnd::CutShort) => result.text == "cut short",
            Some(HandlerEnd::Scripted(End::Ok)) => result.text == index.output_of(node),
            _ => false,
        },
        Some(ErrorKind::ExecutionError) => is(&[End::Fail, End::No]),
        Some(ErrorKind::Transient) => is(&[End::Transient, End::Harmless]),
        Some(ErrorKind::RateLimited) => matches!(end, Some(HandlerEnd::Scripted(End::Limited(_)))),
        Some(ErrorKind::Panic) => is(&[End::Panic]),
        Some(ErrorKind::SandboxError) => is(&[End::NoSandbox, End::SandboxGone]),
        _ => true,
    }
}
