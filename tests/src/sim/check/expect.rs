//! The naive model: how each call ends when calls run one by one, and what may change that.

use super::{
    SLACK_US, Traces, Violation,
    cancels::Reach,
    code_name,
    gate::{Gate, answer},
    handlers::node_of,
    recording::{self, Recording},
    traces::CallTrace,
};
use crate::sim::{
    Fact,
    program::{Act, Consent, End, HookPlan, Index, Node, Placement, Program, ToolPlan},
};
use std::collections::BTreeSet;
use toolyard::{ErrorKind, EventKind, Routing, ToolClass};

/// The least time for which the result of a key is kept, in virtual microseconds (ID-6).
const KEPT_US: u64 = 60_000_000;
/// The size of a tool's retry bucket and the highest cost of one retry (RT-5).
const RETRY_TOKENS: usize = 100;
const RETRY_COST_MAX: usize = 20;

/// How many of its handlers a tool may leave running before it takes no more calls (SC-6).
const ZOMBIES_MAX: usize = 4;

/// How a call ends: its code, or `None` with an output.
type Code = Option<ErrorKind>;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let (disturbances, gate) = (Disturbances::of(index, traces), Gate::of(index, traces));
    let mut violations = Vec::new();
    for (number, trace) in &traces.calls {
        let (Some(node), Some(end)) = (index.nodes.get(number), trace.end) else { continue };
        let mut may_be = own_codes(index, &gate, node);
        // Under one of the policies that there were it may run.
        let may_run = may_be.contains(&None);
        let codes = disturbances.codes(index, *number, end.at_us, may_run);
        let is_free = codes.is_empty();
        may_be.extend(codes);
        if node.class().is_some() {
            may_be.extend(shared_codes(index, &disturbances, &gate, node, end.at_us));
        }
        may_be.extend(index.earlier.codes(index, node));
        if let Some(late_us) = overrun_us(index, node, trace).filter(|_| is_free) {
            violations.push(Violation::new("V3", format!("c{number} ended {late_us} us after its deadline")));
        }
        // What has cancelled it may be noted only behind its end, where the engine's life has ended.
        let is_cut_off = traces.has_crashed
            && end.code == Some(ErrorKind::Cancelled)
            && traces.entries.last().is_some_and(|last| last.at_us == end.at_us);
        if !may_be.contains(&end.code) && !is_cut_off {
            let expected: Vec<_> = may_be.into_iter().map(code_name).collect();
            let (actual, expected) = (code_name(end.code), expected.join(", "));
            let what = format!("c{number} ended with {actual}, expected one of {expected}");
            violations.push(Violation::new("model", what));
        }
    }
    violations
}

/// The codes with which a call may end on its own; several if its times are too close to call.
fn own_codes(index: &Index<'_>, gate: &Gate<'_>, node: &Node<'_>) -> BTreeSet<Code> {
    let program = index.program;
    let (call, is_twin) = (node.call, node.call.twin && node.at > 0);
    let refused = match node.tool {
        _ if is_twin => Some(ErrorKind::InvalidInput),
        _ if program.hooks && !call.broken && !matches!(call.hook, HookPlan::Go(_)) => {
            Some(ErrorKind::Aborted)
        }
        None => Some(ErrorKind::NotFound),
        Some(_) if index.bars(node.agent, call.tool) => Some(ErrorKind::PermissionDenied),
        Some(_) if call.broken => Some(ErrorKind::InvalidInput),
        Some(_) if gate.denies(node) => Some(ErrorKind::PermissionDenied),
        Some(tool) if tool.consent == Consent::Forbidden => Some(ErrorKind::UserDenied),
        Some(_) => None,
    };
    // The breaker is checked before the approver is asked.
    let open = |node| guard_codes(index, node).filter(|code| *code == Some(ErrorKind::CircuitOpen));
    if refused.is_some() {
        let mut codes = BTreeSet::from([refused]);
        if refused == Some(ErrorKind::UserDenied) {
            codes.extend(open(node));
            codes.extend(may_be(ErrorKind::PermissionDenied, gate.may_deny(node)));
        }
        return codes;
    }
    let mut codes: BTreeSet<_> = open(node).collect();
    codes.extend(may_be(ErrorKind::PermissionDenied, gate.may_deny(node)));
    let asked = node.tool.is_some_and(|tool| tool.consent.asks());
    let [settled_yes, settled_no] = if asked { gate.settled(node) } else { [false; 2] };
    codes.extend(may_be(ErrorKind::UserDenied, settled_no));
    if index.agents[node.agent].late {
        codes.insert(Some(ErrorKind::Cancelled));
        return codes;
    }
    for asked_about in questions(index, node) {
        let (answer, answered_ms) = if asked { answer(asked_about.call.answer) } else { (None, Some(0)) };
        let in_time = compare(answered_ms, program.answer_within_ms);
        let at_last = answered_ms.map(|ms| if asked { gate.answered_ms(asked_about, ms) } else { ms });
        if compare(at_last, program.answer_within_ms) != InTime::Yes {
            codes.insert(Some(ErrorKind::ConfirmationTimeout));
        }
        match answer {
            _ if in_time == InTime::No => {}
            Some(refusal) => drop(codes.insert(Some(refusal))),
            None => codes.extend(admitted_codes(index, gate, node)),
        }
    }
    let settled_before = index.earlier.is_settled(node.call.node);
    codes.extend(may_be(ErrorKind::UserDenied, settled_before));
    if settled_yes || settled_before {
        codes.extend(admitted_codes(index, gate, node));
    }
    codes
}

/// The calls whose question may settle a call: its own, and those of calls with the same key and arguments (ID-3).
fn questions<'a>(index: &'a Index<'_>, node: &'a Node<'_>) -> impl Iterator<Item = &'a Node<'a>> {
    let peers = index.peers(node.call.node).iter().filter(|peer| **peer != node.call.node);
    let equal = peers
        .map(|peer| &index.nodes[peer])
        .filter(|peer| peer.call.key.is_some() && peer.call.key == node.call.key && !peer.call.broken);
    std::iter::once(node).chain(equal)
}

/// This code, if it is possible.
fn may_be(code: ErrorKind, is_possible: bool) -> Option<Code> {
    is_possible.then_some(Some(code))
}

/// The codes of a call that passes the gate.
fn admitted_codes(index: &Index<'_>, gate: &Gate<'_>, node: &Node<'_>) -> BTreeSet<Code> {
    let mut codes = handler_codes(index, gate, node);
    codes.extend(guard_codes(index, node));
    codes.extend(may_be(ErrorKind::QueueTimeout, index.program.queue_timeout_ms.is_some()));
    codes.extend(may_be(ErrorKind::DeadlineExceeded, deadline_ms(index, node).is_some()));
    codes.extend(may_be(ErrorKind::SerialNesting, may_not_wait(index, node)));
    codes.extend(room_codes(index, node));
    codes
}

/// The codes of a call for whose result there is no room. What is small always fits.
fn room_codes(index: &Index<'_>, node: &Node<'_>) -> impl Iterator<Item = Code> {
    let is_bounded = index.program.room.is_some();
    let is_large = |peer: &u32| index.nodes[peer].call.script.bytes > 0;
    let may_be_large = index.peers(node.call.node).iter().any(is_large);
    may_be(ErrorKind::Overloaded, is_bounded)
        .into_iter()
        .chain(may_be(ErrorKind::OutputTooLarge, is_bounded && may_be_large))
}

/// The codes that a call may get from others: the ends of calls with its key, and the refusals that a key brings.
fn shared_codes(
    index: &Index<'_>,
    disturbances: &Disturbances,
    gate: &Gate<'_>,
    node: &Node<'_>,
    ended_us: u64,
) -> BTreeSet<Code> {
    let (mut codes, peers) = (BTreeSet::new(), index.peers(node.call.node));
    for peer in peers {
        let theirs = disturbances.codes(index, *peer, ended_us, false);
        // In its grace a handler has no other bound, so it may get to a panic that its timeout would have cut off.
        let is_cut = theirs.contains(&Some(ErrorKind::Cancelled));
        let peer = &index.nodes[peer];
        if is_cut && peer.call.script.ends().any(|end| end == End::Panic) {
            codes.insert(Some(ErrorKind::Panic));
        }
        if peer.call.node != node.call.node {
            codes.extend(theirs);
            codes.extend(handler_codes(index, gate, peer));
            codes.extend(deadline_ms(index, peer).map(|_| Some(ErrorKind::DeadlineExceeded)));
        }
    }
    if peers.len() > 1 {
        let args = |peer: &u32| index.nodes[peer].call.key;
        if peers.iter().any(|peer| args(peer) != node.call.key) {
            codes.insert(Some(ErrorKind::KeyMismatch));
        }
        if node.parent.is_some() || node.tool.is_some_and(|tool| tool.guards.key_fails) {
            codes.insert(Some(ErrorKind::KeyInProgress));
        }
        if ended_us >= KEPT_US {
            codes.insert(Some(ErrorKind::AlreadyExecuted));
        }
    }
    codes
}

/// The codes that a tool's breakers, rate and budgets may give a call instead of running it.
fn guard_codes(index: &Index<'_>, node: &Node<'_>) -> impl Iterator<Item = Code> {
    let Program { budgets, orders, .. } = index.program;
    let tool = node.tool.expect("a call that runs has a tool");
    let forced = orders
        .iter()
        .any(|order| matches!(order.act, Act::ForceOpen(owner) if owner.covers(node.call.tool, tool)));
    let shares = tool.guards.backend.is_some() || tool.sandboxed;
    let shared = shares && index.program.shared_breaker().is_enabled();
    let is_spent = !tool.guards.budget.is_unlimited() || budgets.iter().any(|budget| !budget.is_unlimited());
    // A tool with four zombies takes no calls (SC-6).
    let calls = || index.nodes.values().filter(|it| it.call.tool == node.call.tool).count();
    let zombies = tool.placement == Placement::Blocking && calls() > ZOMBIES_MAX;
    let found = [
        (ErrorKind::CircuitOpen, forced || shared || zombies || tool.guards.breaker.is_enabled()),
        (ErrorKind::RateLimited, index.waits_for_tokens(node.call.tool)),
        (ErrorKind::BudgetExceeded, is_spent),
    ];
    found.into_iter().filter(|(_, may_be)| *may_be).map(|(code, _)| Some(code))
}

/// The shortest deadline of the call, its ancestors and the engine, in milliseconds from the start of its run.
fn deadline_ms(index: &Index<'_>, node: &Node<'_>) -> Option<u64> {
    let own = |node: u32| index.nodes.get(&node)?.call.deadline_ms.or(index.program.deadline_ms);
    index.lineage(node.call.node).filter_map(own).min()
}

/// By how much a call that ran has overrun its deadline, counted from when it was ready; `None` if it has not.
fn overrun_us(index: &Index<'_>, node: &Node<'_>, trace: &CallTrace<'_>) -> Option<u64> {
    let within_us = 1000 * deadline_ms(index, node)?;
    let ready_us = trace.events.iter().find_map(|(_, at_us, event)| match event.kind {
        EventKind::Called { queue_ms, .. } => Some(at_us.saturating_sub(queue_ms * 1000)),
        _ => None,
    })?;
    trace.over?.0.checked_sub(ready_us + within_us + SLACK_US)
}

/// Whether a call may not wait for its serial scope (CC-8): the scope is neither that of its nearest ancestor with
/// one, nor does it rank above the scopes of all ancestors.
fn may_not_wait(index: &Index<'_>, node: &Node<'_>) -> bool {
    let above =
        index.lineage(node.call.node).skip(1).filter_map(|above| index.nodes.get(&above)?.scope(index));
    let held: Vec<_> = above.collect();
    let (Some(scope), Some(nearest)) = (node.scope(index), held.first()) else { return false };
    *nearest != scope && held.iter().any(|held| *held >= scope)
}

/// The codes of a call whose handler runs as often as its retry policy allows. A call that may take over the flight of
/// another call may begin with any attempt.
fn handler_codes(index: &Index<'_>, gate: &Gate<'_>, node: &Node<'_>) -> BTreeSet<Code> {
    let most = node.tool.expect("a call that runs has a tool").guards.retry.max_attempts().get();
    let firsts = if index.peers(node.call.node).len() > 1 { 1..=most } else { 1..=1 };
    let later = index.earlier.next_attempts(node.call.node);
    firsts.chain(later).flat_map(|first| codes_from(index, gate, node, first)).collect()
}

/// The codes of a call whose own attempts begin with this one.
fn codes_from(index: &Index<'_>, gate: &Gate<'_>, node: &Node<'_>, first: u32) -> BTreeSet<Code> {
    let walls_ms = gate.walls_ms(node);
    let tool = node.tool.expect("a call that runs has a tool");
    let most = tool.guards.retry.max_attempts().get().max(first);
    let mut codes = BTreeSet::new();
    for attempt in first..=most {
        let ends: BTreeSet<_> =
            walls_ms.iter().flat_map(|wall_ms| attempt_codes(node, attempt, *wall_ms)).collect();
        let (again, over): (Vec<Code>, Vec<Code>) =
            ends.into_iter().partition(|code| attempt < most && may_repeat(node, tool, attempt, *code));
        codes.extend(over);
        if again.is_empty() {
            return codes;
        }
        if may_stop(index, node, attempt) {
            codes.extend(again);
        }
    }
    codes
}

/// Whether an attempt with this end may be repeated (RT-1, RT-7).
fn may_repeat(node: &Node<'_>, tool: &ToolPlan, attempt: u32, code: Code) -> bool {
    let harmless = node.call.script.end_of(attempt) == End::Harmless;
    !tool.recursive
        && match code {
            Some(ErrorKind::Transient) => tool.is_repeatable() || harmless,
            Some(ErrorKind::RateLimited | ErrorKind::Timeout) => tool.is_repeatable(),
            _ => false,
        }
}

/// Whether a retry may be impossible for lack of time, tokens or permits, or because the attempt made nested calls
/// (RT-3 to RT-7).
fn may_stop(index: &Index<'_>, node: &Node<'_>, attempt: u32) -> bool {
    let tool = node.tool.expect("a call that runs has a tool");
    let of_tool = index.nodes.values().filter(|it| it.call.tool == node.call.tool);
    let retries = of_tool.count() * (tool.guards.retry.max_attempts().get() - 1) as usize;
    deadline_ms(index, node).is_some()
        || matches!(node.call.script.end_of(attempt), End::Limited(Some(30_001..)))
        || tool.placement == Placement::Blocking
        // It may cancel the call between the end of its handler and the next attempt.
        || tool.on_drop.is_some_and(|does| does.may_cancel(&index.program.policies))
        || node.call.script.is_nested()
        || retries * RETRY_COST_MAX > RETRY_TOKENS
}

/// The codes of one attempt under a policy's wall time limit; two if its times are too close to call.
fn attempt_codes(node: &Node<'_>, attempt: u32, wall_ms: Option<u64>) -> BTreeSet<Code> {
    let (script, mut codes) = (&node.call.script, BTreeSet::new());
    let (tool, end) = (node.tool.expect("a call that runs has a tool"), script.end_of(attempt));
    let own_bound_ms = node.call.timeout_ms.or((!tool.recursive).then_some(tool.timeout_ms));
    let bound_ms = own_bound_ms.into_iter().chain(wall_ms).min();
    // The clock of a handler that awaits nested calls stands still, so only its own time counts.
    let own_ms = |ms: u64| (end != End::Hang).then_some(ms);
    // A handler that does not start takes no time.
    let (least, most) = if end == End::NoSandbox { (0, 0) } else { script.own_ms() };
    let in_time = [least, most].map(|ms| compare(own_ms(ms), bound_ms.unwrap_or(u64::MAX)));
    let in_time = if in_time[0] == in_time[1] { in_time[0] } else { InTime::Close };
    if in_time != InTime::Yes {
        codes.insert(Some(ErrorKind::Timeout));
    }
    if in_time != InTime::No {
        codes.insert(match end {
            End::Ok => None,
            End::Fail | End::No => Some(ErrorKind::ExecutionError),
            End::Transient | End::Harmless => Some(ErrorKind::Transient),
            End::Limited(_) => Some(ErrorKind::RateLimited),
            End::NoSandbox | End::SandboxGone => Some(ErrorKind::SandboxError),
            End::Panic => Some(ErrorKind::Panic),
            End::Hang => Some(ErrorKind::Timeout),
        });
    }
    codes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InTime {
    Yes,
    No,
    Close,
}

fn compare(takes_ms: Option<u64>, within_ms: u64) -> InTime {
    let slack_ms = SLACK_US / 1000;
    match takes_ms {
        None => InTime::No,
        Some(takes) if takes.saturating_add(slack_ms) < within_ms => InTime::Yes,
        Some(takes) if takes > within_ms.saturating_add(slack_ms) => InTime::No,
        Some(_) => InTime::Close,
    }
}

/// The events of a run that may change how calls end: since when, for which calls, and to which codes.
struct Disturbances {
    found: Vec<(u64, Reach, Vec<Code>)>,
}

impl Disturbances {
    fn of(index: &Index<'_>, traces: &Traces<'_>) -> Self {
        // A cancelled handler may still end its own way.
        let cancelled = || vec![Some(ErrorKind::Cancelled), None];
        let mut found = Vec::new();
        let mut recording = Recording::default();
        for entry in traces.entries {
            recording.follow(&entry.fact);
            if matches!(entry.fact, Fact::SetPolicy(_)) {
                // What a call may use was recorded before another policy granted it something else (SM-4).
                let denied = |call| (entry.at_us, Reach::Call(call), vec![Some(ErrorKind::PermissionDenied)]);
                found.extend(recording.calls().map(denied));
            }
            found.push(match &entry.fact {
                Fact::CancelTurn(batch) | Fact::Drop(batch) => {
                    (entry.at_us, Reach::Batch(*batch), cancelled())
                }
                Fact::CancelSession(session) => (entry.at_us, Reach::Session(*session), cancelled()),
                Fact::CancelCalls(session) => (entry.at_us, Reach::Session(*session), cancelled()),
                Fact::CancelCall(node) => (entry.at_us, Reach::Call(*node), cancelled()),
                Fact::CancelFork(number) => (entry.at_us, Reach::Fork(*number), cancelled()),
                Fact::ShuttingDown(..) => {
                    let codes = vec![Some(ErrorKind::ShuttingDown), Some(ErrorKind::Cancelled), None];
                    (entry.at_us, Reach::All, codes)
                }
                Fact::Event(event) if index.program.skip_rest => match skipped_batch(index, event) {
                    Some(batch) => (entry.at_us, Reach::Batch(batch), vec![Some(ErrorKind::Cancelled)]),
                    None => continue,
                },
                _ => continue,
            });
        }
        found.extend(zombies(index, traces).map(|since_us| {
            // A handler with nested calls may wait behind it to resume and end there (CC-6c).
            let codes = vec![Some(ErrorKind::QueueTimeout), Some(ErrorKind::Timeout)];
            (since_us, Reach::All, codes)
        }));
        // What a handler has dispatched is cancelled when the handler is given up, which shows if it can be dropped.
        let blocking = traces.calls.iter().filter(|(node, _)| {
            let tool = index.nodes.get(node).and_then(|node| node.tool);
            tool.is_some_and(|tool| tool.placement == Placement::Blocking)
        });
        found.extend(blocking.filter_map(|(node, trace)| {
            let since_us = trace.over?.0.saturating_sub(SLACK_US);
            Some((since_us, Reach::Below(*node), cancelled()))
        }));
        // When the last caller waiting for a handler leaves, the handler is cancelled.
        let late = traces.calls.iter().filter_map(|(node, trace)| Some((*node, trace.end?, trace.over?.0)));
        let late = late.filter(|(_, end, _)| end.code == Some(ErrorKind::DeadlineExceeded));
        found.extend(
            late.filter(|(node, ..)| index.peers(*node).len() > 1)
                .map(|(node, _, over_us)| (over_us, Reach::Call(node), cancelled())),
        );
        let failures = recording::failures(traces.entries);
        found.extend(
            failures.into_iter().map(|(since_us, reach)| (since_us, reach, vec![Some(ErrorKind::Internal)])),
        );
        if index.program.queue_max.is_some() {
            found.push((0, Reach::All, vec![Some(ErrorKind::Overloaded)]));
        }
        Self { found }
    }

    /// The codes with which these events may have made a call end at that time.
    fn codes(&self, index: &Index<'_>, node: u32, ended_us: u64, may_run: bool) -> Vec<Code> {
        let reach =
            |(since, reach, _): &&(u64, Reach, Vec<Code>)| *since <= ended_us && reach.may_reach(index, node);
        let is_routed = index.nodes.get(&node).is_some_and(|node| node.routing != Routing::ShortCircuit);
        let runs = may_run || is_routed;
        let nests = index.nodes.get(&node).is_some_and(|node| node.call.script.is_nested());
        let found = self.found.iter().filter(reach).flat_map(|(_, _, codes)| codes.iter().copied());
        // A call refused before it could run ends that way whatever happens, except while hooks take their time.
        let found = found.filter(|code| nests || *code != Some(ErrorKind::Timeout));
        found.filter(|code| runs || (index.program.hooks && code.is_some())).collect()
    }
}

/// For each handler that was given up and kept running: since when calls may end because they waited behind it. They
/// wait for 30 s, less what may pass in between, from its end, or from that of a call above it, whose run it keeps from
/// being quiescent (CL-3); or from that of a call which waited for its result and has left (ID-4); or from that of a
/// handler which stopped at once, if they waited for both.
fn zombies(index: &Index<'_>, traces: &Traces<'_>) -> impl Iterator<Item = u64> {
    const WAIT_US: u64 = 29_000_000;
    let ended = |node: u32| Some(traces.calls.get(&node)?.over?.0);
    let given_up = |(node, trace): (&u32, &CallTrace)| {
        let (over_us, place) = trace.over?;
        let attempt = trace.attempts.last().filter(|attempt| attempt.started.is_some())?;
        let stopped = attempt.stopped.filter(|stopped| stopped.1 <= place);
        let kept = index.lineage(*node).chain(index.peers(*node).iter().copied());
        let first_us = kept.filter_map(ended).min()?;
        stopped.is_none().then_some((first_us, attempt.stopped.map(|stopped| stopped.0), over_us))
    };
    let given_up: Vec<_> = traces.calls.iter().filter_map(given_up).collect();
    let first_us = given_up.iter().map(|it| it.0).min().unwrap_or(0);
    let runs_on = given_up.into_iter().filter(|(kept_us, stopped, ended_us)| {
        // Who has waited long enough by then does not wait for one that stops at once.
        stopped.is_none_or(|it| it > *ended_us || kept_us + WAIT_US <= *ended_us)
    });
    runs_on.map(move |(_, _, ended_us)| ended_us.max(first_us + WAIT_US))
}

/// The batch whose remaining calls are skipped because this event is the failure of a serial call.
fn skipped_batch(index: &Index<'_>, event: &toolyard::Event) -> Option<u32> {
    let failed = matches!(event.kind, EventKind::Failed(_) | EventKind::Denied(_));
    let node = node_of(event)?;
    let node = index.nodes.get(&node)?;
    // A breaker is checked before the approver is asked, so a call of a forbidden tool may be routed by its class.
    let is_serial = node.class() == Some(ToolClass::Serial)
        || node.tool.is_some_and(|tool| tool.class == ToolClass::Serial);
    let failed = failed && is_serial;
    failed.then_some(node.batch)
}
