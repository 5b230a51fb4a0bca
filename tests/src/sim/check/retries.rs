//! I9: attempts and the delays between them are what the rules allow (RT-1 to RT-7).

use super::{
    Traces, Violation,
    handlers::node_of,
    traces::{AttemptTrace, CallTrace},
};
use crate::sim::{
    Fact, HandlerEnd, HandlerStep,
    program::{End, Index, Node, ToolPlan},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};
use toolyard::{ErrorKind, EventKind, Jitter, RetryPolicy, RetryStopped};

/// The longest wait that a remote may ask for (RT-3), and the least time worth an attempt (RT-4), in milliseconds.
const HINT_MAX_MS: u64 = 30_000;
const ATTEMPT_MIN_MS: u64 = 50;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = check_bucket(index, traces);
    for (number, trace) in &traces.calls {
        let Some((node, tool)) = index.nodes.get(number).and_then(|node| Some((node, node.tool?))) else {
            continue;
        };
        let mut broken = |what: String| violations.push(Violation::new("I9", format!("c{number} {what}")));
        let most = tool.guards.retry.max_attempts().get().max(index.earlier.next_attempt(index, *number));
        if let Some(it) = trace.attempts.iter().find(|it| it.number > most) {
            broken(format!("made attempt {} of at most {most}", it.number));
        }
        for (at, it) in trace.attempts.iter().enumerate() {
            let next = trace.attempts.get(at + 1);
            if next.is_some() && it.retry.is_none() {
                broken(format!("made attempt {} without a retry event", it.number + 1));
            }
            if let Some((delay_ms, code)) = it.retry {
                check_retry(index, node, tool, trace, it, delay_ms, code, &mut broken);
                check_delay(it, next, delay_ms, &mut broken);
            }
        }
        check_last(traces, node, tool, trace, &mut broken);
    }
    violations
}

/// Checks whether this attempt may be repeated after this delay.
#[allow(clippy::too_many_arguments, reason = "a struct of these would have no other use")]
fn check_retry(
    index: &Index<'_>,
    node: &Node<'_>,
    tool: &ToolPlan,
    trace: &CallTrace<'_>,
    it: &AttemptTrace,
    delay_ms: u64,
    code: ErrorKind,
    broken: &mut impl FnMut(String),
) {
    let policy = tool.guards.retry;
    if it.number >= policy.max_attempts().get() {
        broken(format!("is retried after attempt {}, its last", it.number));
    }
    if !may_repeat(tool, it, code) {
        broken(format!("is retried after {code:?} ({:?}) although it must not run twice", it.end));
    }
    let (from_us, to_us) = (it.started.map_or(u64::MAX, |(at_us, _)| at_us), it.stopped_us());
    let parks = |(at_us, step): &(u64, HandlerStep)| {
        *step == HandlerStep::Parked && (from_us..=to_us).contains(at_us)
    };
    let has_called = trace.steps.iter().any(parks);
    if has_called {
        broken("is retried although it made nested calls".to_owned());
    }
    let hint = hint(it);
    if hint.is_some_and(|hint| hint > HINT_MAX_MS) {
        broken(format!("waits {hint:?} ms as its remote asks, over the limit of {HINT_MAX_MS} ms"));
    }
    let (least, most) = bounds(&policy, it.number);
    let (least, most) = (least.max(hint.unwrap_or(0)), most.max(hint.unwrap_or(0)));
    if delay_ms + 1 < least || delay_ms > most {
        broken(format!("waits {delay_ms} ms after attempt {} instead of {least} to {most} ms", it.number));
    }
    let bound_ms = node.call.timeout_ms.unwrap_or(if tool.recursive { 0 } else { tool.timeout_ms });
    // The journal does not show which policy bounds the attempt, so the shortest limit counts.
    let bound_ms = index.program.policies.iter().filter_map(|policy| policy.wall_ms).fold(bound_ms, u64::min);
    let needs_us = (delay_ms + ATTEMPT_MIN_MS.max(bound_ms / 10)) * 1000;
    let deadline_ms = node.call.deadline_ms.or(index.program.deadline_ms);
    // The deadline of a flight is the latest among its callers.
    let is_alone = index.peers(node.call.node).len() <= 1;
    if let (Some(deadline_ms), Some(ready_us), Some((at_us, _))) = (deadline_ms, trace.ready_us(), it.closed)
        && is_alone
        && at_us + needs_us > ready_us + deadline_ms * 1000 + 2_000
    {
        broken(format!("waits {delay_ms} ms at {at_us} us, past its deadline"));
    }
}

/// Checks that the next attempt waits for the whole delay.
fn check_delay(
    it: &AttemptTrace,
    next: Option<&AttemptTrace>,
    delay_ms: u64,
    broken: &mut impl FnMut(String),
) {
    let (Some(next), Some((from_us, _))) = (next, it.closed) else { return };
    if next.at_us < from_us + delay_ms * 1000 {
        broken(format!("was to wait {delay_ms} ms from {from_us} us but went on at {} us", next.at_us));
    }
    if next.number != it.number + 1 {
        broken(format!("made attempt {} after attempt {}", next.number, it.number));
    }
}

/// Checks that an attempt that could be repeated was, unless the result says why not.
fn check_last(
    traces: &Traces<'_>,
    node: &Node<'_>,
    tool: &ToolPlan,
    trace: &CallTrace<'_>,
    broken: &mut impl FnMut(String),
) {
    let (Some(result), Some(last)) = (traces.results.get(&node.call.node), trace.attempts.last()) else {
        return;
    };
    let (Some(code), Some((_, HandlerEnd::Scripted(_)))) = (result.code, last.end) else { return };
    let most = tool.guards.retry.max_attempts().get();
    let could = most > 1 && !tool.recursive && !node.call.script.is_nested() && may_repeat(tool, last, code);
    // A call that ends before its next attempt has a reason of its own.
    if !could || result.attempts != last.number || last.retry.is_some() {
        return;
    }
    match result.stopped {
        None => {
            broken(format!("ended with {code} after {} of {most} attempts without a reason", last.number))
        }
        Some(RetryStopped::Attempts) if last.number != most => {
            broken(format!("claims all {most} attempts were made, but made {}", last.number));
        }
        Some(RetryStopped::Attempts) | Some(_) => {}
    }
}

/// Whether an attempt may be repeated (RT-1).
fn may_repeat(tool: &ToolPlan, it: &AttemptTrace, code: ErrorKind) -> bool {
    let harmless = matches!(it.end, Some((_, HandlerEnd::Scripted(End::Harmless))));
    !tool.recursive
        && match code {
            ErrorKind::Transient => tool.is_repeatable() || harmless,
            ErrorKind::RateLimited | ErrorKind::Timeout => tool.is_repeatable(),
            _ => false,
        }
}

/// The delay that the remote asked for at the end of an attempt, in milliseconds.
pub(super) fn hint(it: &AttemptTrace) -> Option<u64> {
    match it.end {
        Some((_, HandlerEnd::Scripted(End::Limited(after)))) => after,
        _ => None,
    }
}

/// The shortest and longest delay after this attempt, in milliseconds (RT-2).
fn bounds(policy: &RetryPolicy, ended: u32) -> (u64, u64) {
    let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
    let step = ms(policy.base()) * policy.factor().powi(ended as i32 - 1);
    let cap = ms(policy.cap());
    match policy.jitter() {
        // Steps are capped so that the longest delay equals the cap.
        Jitter::Half => (step.min(cap / 1.5) as u64, (step * 1.5).min(cap).ceil() as u64),
        Jitter::Full => (0, step.min(cap).ceil() as u64),
    }
}

/// The retry tokens of a tool.
struct Bucket {
    tokens: u64,
    /// What was given back at this time and found it full.
    spilled: (u64, u64),
}

impl Bucket {
    const FULL: u64 = 100;

    fn new() -> Self {
        Self { tokens: Self::FULL, spilled: (0, 0) }
    }

    fn give_back(&mut self, at_us: u64, back: u64) {
        let sum = self.tokens + back;
        self.tokens = sum.min(Self::FULL);
        let before = if self.spilled.0 == at_us { self.spilled.1 } else { 0 };
        self.spilled = (at_us, before + (sum - self.tokens));
    }

    /// Takes tokens. Returns how many there are, if those are too few.
    fn take(&mut self, at_us: u64, cost: u64) -> Option<u64> {
        let too_few = (self.tokens < cost).then_some(self.tokens);
        self.tokens = self.tokens.saturating_sub(cost);
        // A handler reports its success before the engine counts it: what was given back at this time may come after
        // this, and then has room.
        if self.spilled.0 == at_us {
            let back = self.spilled.1.min(cost);
            self.tokens += back;
            self.spilled.1 -= back;
        }
        too_few
    }
}

/// Checks RT-5 with a naive count: a retry costs tokens, which return if a handler succeeds or the retry is not made.
fn check_bucket(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let (mut violations, mut buckets) = (Vec::new(), BTreeMap::<usize, Bucket>::new());
    let mut paid: BTreeMap<u32, u64> = BTreeMap::new();
    // The calls whose latest retry was made.
    let mut made: BTreeSet<u32> = BTreeSet::new();
    for entry in traces.entries {
        match &entry.fact {
            Fact::HandlerEnd(node, HandlerEnd::Scripted(End::Ok) | HandlerEnd::CutShort) => {
                let Some(it) = index.nodes.get(node) else { continue };
                // A call that took over a flight was paid for by another call.
                let back = paid.remove(node).unwrap_or(if it.call.key.is_some() { 20 } else { 1 });
                buckets.entry(it.call.tool).or_insert_with(Bucket::new).give_back(entry.at_us, back);
            }
            Fact::Event(event) => {
                let Some(it) = node_of(event).and_then(|node| index.nodes.get(&node)) else { continue };
                let code = match event.kind {
                    // What an earlier life has left is free.
                    EventKind::Retry { code: ErrorKind::Interrupted, .. } => continue,
                    EventKind::Retry { code, .. } => code,
                    EventKind::Attempt => {
                        made.insert(it.call.node);
                        continue;
                    }
                    ref end if end.is_terminal() && !made.contains(&it.call.node) => {
                        let back = paid.remove(&it.call.node).unwrap_or(0);
                        let bucket = buckets.entry(it.call.tool).or_insert_with(Bucket::new);
                        bucket.give_back(entry.at_us, back);
                        continue;
                    }
                    _ => continue,
                };
                made.remove(&it.call.node);
                let cost = if code == ErrorKind::Timeout { 20 } else { 10 };
                let bucket = buckets.entry(it.call.tool).or_insert_with(Bucket::new);
                if let Some(tokens) = bucket.take(entry.at_us, cost) {
                    let what = format!(
                        "c{} is retried although its tool has only {tokens} retry tokens",
                        it.call.node
                    );
                    violations.push(Violation::new("I9", what));
                }
                paid.insert(it.call.node, cost);
            }
            _ => {}
        }
    }
    violations
}
