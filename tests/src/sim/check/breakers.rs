//! I8: breakers make legal moves for a reason, nothing starts while one is open, and only one probe at a time runs
//! while it is half-open (CB-2 to CB-10).

use super::{SLACK_US, Traces, Violation, recording::Recording, recording_us, traces::AttemptTrace};
use crate::sim::{
    Fact, HandlerEnd,
    program::{BreakerOwner, End, Guards, Index, Placement},
};
use toolyard::{BreakerOf, BreakerPolicy, BreakerState, ErrorKind, EventKind, Reason};

/// The event of an attempt may come this long after its breaker admitted it.
const EVENT_LAG_US: u64 = 50_000;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let tools = 0..index.program.tools.len();
    for owner in
        tools.map(BreakerOwner::Tool).chain((0..2).map(BreakerOwner::Backend)).chain([BreakerOwner::Sandbox])
    {
        let breaker = BreakerTrace::new(index, traces, owner);
        violations.extend(breaker.check_transitions());
        violations.extend(breaker.check_starts());
        violations.extend(breaker.check_refusals());
    }
    violations
}

/// A period in which a breaker was in one state.
#[derive(Debug, Clone, Copy)]
struct StatePeriod {
    state: BreakerState,
    at_us: u64,
    place: usize,
    /// The state before.
    from: BreakerState,
}

/// A breaker and everything observed of it.
struct BreakerTrace<'a> {
    index: &'a Index<'a>,
    traces: &'a Traces<'a>,
    owner: BreakerOwner,
    policy: BreakerPolicy,
    periods: Vec<StatePeriod>,
    /// The attempts that it admitted and their calls, in the order of their events.
    attempts: Vec<(u32, &'a AttemptTrace)>,
}

impl<'a> BreakerTrace<'a> {
    fn new(index: &'a Index<'a>, traces: &'a Traces<'a>, owner: BreakerOwner) -> Self {
        let closed = BreakerState::Closed;
        let mut periods = vec![StatePeriod { state: closed, at_us: 0, place: 0, from: closed }];
        for (place, entry) in traces.entries.iter().enumerate() {
            let Fact::Event(event) = &entry.fact else { continue };
            let EventKind::BreakerTransition { from, to, .. } = &event.kind else { continue };
            if BreakerOf::of_event(&event.kind) == Some(owner.breaker()) {
                periods.push(StatePeriod { state: *to, at_us: entry.at_us, place, from: *from });
            }
        }
        let passes = |node: &u32| {
            let node = index.nodes.get(node)?;
            node.tool.filter(|tool| owner.covers(node.call.tool, tool))
        };
        let call_traces = traces.calls.iter().filter(|(node, _)| passes(node).is_some());
        let mut attempts: Vec<_> =
            call_traces.flat_map(|(node, trace)| trace.attempts.iter().map(|it| (*node, it))).collect();
        attempts.sort_by_key(|(_, it)| it.place);
        let policy = match owner {
            BreakerOwner::Tool(tool) => {
                index.program.tools.get(tool).map_or(Guards::NONE.breaker, |tool| tool.guards.breaker)
            }
            BreakerOwner::Backend(_) | BreakerOwner::Sandbox => index.program.shared_breaker(),
        };
        Self { index, traces, owner, policy, periods, attempts }
    }

    fn broken(&self, what: String) -> Violation {
        Violation::new("I8", format!("the breaker of {}: {what}", self.owner.name()))
    }

    /// The state it was in at this position of the journal.
    fn at(&self, place: usize) -> &StatePeriod {
        let mut periods = self.periods.iter().rev();
        periods.find(|period| period.place <= place).unwrap_or(&self.periods[0])
    }

    fn check_transitions(&self) -> Vec<Violation> {
        let (mut violations, mut opens) = (Vec::new(), 0_u32);
        for (before, now) in self.periods.iter().zip(&self.periods[1..]) {
            let StatePeriod { state, at_us, from, .. } = *now;
            if from != before.state || !from.may_become(state) {
                let what =
                    format!("at {at_us} us it went from {from:?} to {state:?} but was {:?}", before.state);
                violations.push(self.broken(what));
            }
            if (state.is_forced() || from.is_forced()) && !self.was_operated(now) {
                violations
                    .push(self.broken(format!("at {at_us} us it became {state:?} without an operator")));
            }
            match (from, state) {
                (BreakerState::Closed, BreakerState::Open) => {
                    opens = 1;
                    violations.extend(self.too_few_failures(before, now));
                }
                (BreakerState::HalfOpen, BreakerState::Open) => opens += 1,
                (BreakerState::Open, BreakerState::HalfOpen) => {
                    let (least_us, stood_us) = (self.open_us(opens), at_us.saturating_sub(before.at_us));
                    if stood_us + 1 < least_us {
                        let what = format!(
                            "at {at_us} us it became half-open after {stood_us} us instead of {least_us}"
                        );
                        violations.push(self.broken(what));
                    }
                }
                _ => {}
            }
        }
        violations
    }

    /// Whether an operator caused the transition.
    fn was_operated(&self, period: &StatePeriod) -> bool {
        let mut at_once =
            self.traces.entries[..period.place].iter().filter(|entry| entry.at_us == period.at_us);
        at_once.any(|entry| matches!(entry.fact, Fact::Operated(owner) if owner == self.owner))
    }

    /// The least time it stays open (CB-4).
    fn open_us(&self, opens: u32) -> u64 {
        let time = self.policy.open_for().saturating_mul(1 << opens.saturating_sub(1).min(20));
        (time.min(self.policy.open_max()).as_micros() as f64 * (1.0 - self.policy.jitter())) as u64
    }

    /// Checks that enough failures happened since it was closed (CB-2).
    fn too_few_failures(&self, before: &StatePeriod, now: &StatePeriod) -> Option<Violation> {
        let least = self
            .policy
            .consecutive()
            .map_or(u32::MAX, |most| most.get())
            .min(self.policy.failures_min().get());
        let is_in = |place: usize| (before.place..=now.place).contains(&place);
        // The event of a failed call comes after the breaker has counted the failure.
        let counted = |place: usize| is_in(place) || place > now.place;
        let over = |node: u32, it: &AttemptTrace| {
            let by_stop =
                it.stopped.filter(|_| self.may_go_on(node)).is_some_and(|(_, place)| counted(place));
            (by_stop || it.finished().is_none_or(|(_, place)| counted(place))) && it.place < now.place
        };
        let failed = self.attempts.iter();
        let failed = failed.filter(|(node, it)| over(*node, it) && self.may_have_failed(*node, it)).count();
        ((failed as u64) < u64::from(least)).then(|| {
            self.broken(format!("at {} us it opened after {failed} failures instead of {least}", now.at_us))
        })
    }

    /// Checks that nothing starts while it is open, and that only one probe at a time runs while it is half-open.
    fn check_starts(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (at, (node, it)) in self.attempts.iter().enumerate() {
            let period = self.at(it.place);
            let shut = matches!(period.state, BreakerState::Open | BreakerState::ForcedOpen);
            if shut && it.at_us > period.at_us + (EVENT_LAG_US + recording_us(self.index)) {
                let what = format!(
                    "c{node} started at {} us although it is {:?} since {} us",
                    it.at_us, period.state, period.at_us
                );
                violations.push(self.broken(what));
            }
            if period.state != BreakerState::HalfOpen {
                continue;
            }
            // Earlier attempts that it admitted as probes as well.
            let mut others = self.attempts[..at].iter().filter(|(_, other)| other.place > period.place);
            let still = |other: &AttemptTrace| {
                let expires_us = other.at_us.saturating_sub(EVENT_LAG_US + recording_us(self.index))
                    + 1000 * self.timeout_ms().min(u64::MAX / 2000);
                other.finished().is_none_or(|(_, over)| over > it.place) && it.at_us < expires_us
            };
            if let Some((other, _)) = others.find(|(other, probe)| still(probe) && other != node) {
                violations.push(
                    self.broken(format!(
                        "c{node} is a probe at {} us although c{other} still is one",
                        it.at_us
                    )),
                );
            }
        }
        violations
    }

    /// The shortest attempt timeout among the attempts it admitted.
    fn timeout_ms(&self) -> u64 {
        let nodes = self.attempts.iter().filter_map(|(node, _)| self.index.nodes.get(node));
        let own = nodes.filter_map(|node| Some(node.call.timeout_ms.unwrap_or(node.tool?.timeout_ms)));
        own.min().unwrap_or(u64::MAX)
    }

    /// Whether some call that passes this breaker waits here for the record of its attempt, or is about to: it may be the
    /// probe (SM-4).
    fn is_recording(&self, place: usize) -> bool {
        let mut recording = Recording::default();
        let until_us = self.traces.entries[place].at_us + SLACK_US;
        let near = self.traces.entries.iter().take_while(|entry| entry.at_us <= until_us);
        for (at, entry) in near.enumerate() {
            recording.begins(&entry.fact);
            if at < place {
                recording.ends(&entry.fact);
            }
        }
        let mut calls = recording.calls().filter_map(|number| self.index.nodes.get(&number));
        calls.any(|node| node.tool.is_some_and(|tool| self.owner.covers(node.call.tool, tool)))
    }

    /// Checks the `circuit_open` refusals: the state they name is the true one, and if it is half-open, a probe exists.
    fn check_refusals(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let kind = if self.owner == BreakerOwner::Sandbox { "sandbox " } else { "" };
        let prefix = format!("{kind}'{}' is failing often; its circuit is ", self.owner.name());
        // With hooks, the event of a refusal comes a while after the check.
        if self.index.program.hooks {
            return violations;
        }
        for (number, trace) in &self.traces.calls {
            let Some((place, failure)) = trace.failure().filter(|(_, it)| it.code == ErrorKind::CircuitOpen)
            else {
                continue;
            };
            // The event of a call that has run comes a while after the check too, if that is recorded.
            if self.index.program.recorder.is_some() && failure.attempts > 0 {
                continue;
            }
            let Some(state) =
                failure.message.strip_prefix(&prefix).filter(|_| failure.reason != Some(Reason::Zombie))
            else {
                continue;
            };
            let (period, at_us) = (self.at(place), self.traces.entries[place].at_us);
            if !state.starts_with(&format!("{},", period.state.as_str())) {
                let what = format!(
                    "c{number} is refused at {at_us} us with the state {state}, but it is {:?}",
                    period.state
                );
                violations.push(self.broken(what));
            }
            // A probe may go on for other calls when its own has ended.
            let in_flight = |it: &AttemptTrace| {
                it.at_us <= at_us + SLACK_US && it.stopped_us().saturating_add(SLACK_US) >= at_us
            };
            // Where the engine's life ends as the start of the probe is given to the recorder, nothing of it is noted.
            let ends_now =
                self.traces.has_crashed && self.traces.entries.last().is_some_and(|last| last.at_us == at_us);
            let has_probe =
                self.attempts.iter().any(|(_, it)| in_flight(it)) || self.is_recording(place) || ends_now;
            if period.state == BreakerState::HalfOpen && !has_probe {
                let what = format!("c{number} is refused at {at_us} us because of a probe, but none runs");
                violations.push(Violation::new("CB-5", self.broken(what).what));
            }
        }
        violations
    }

    /// Whether the handler of a call may have gone on for others of its key when the call ended (ID-4). Its end is counted
    /// then.
    fn may_go_on(&self, node: u32) -> bool {
        let has_key = self.index.nodes.get(&node).is_some_and(|it| it.call.key.is_some());
        let left = [ErrorKind::Cancelled, ErrorKind::DeadlineExceeded];
        has_key && self.traces.end(node).and_then(|end| end.code).is_some_and(|code| left.contains(&code))
    }

    /// Whether the breaker may have counted the attempt as failed.
    fn may_have_failed(&self, node: u32, it: &AttemptTrace) -> bool {
        let tool = self.index.nodes.get(&node).and_then(|node| node.tool);
        let of_sandbox = match it.end {
            Some((_, HandlerEnd::Scripted(end))) if end.is_of_sandbox() => Some(end),
            _ => None,
        };
        match (self.owner, of_sandbox) {
            (BreakerOwner::Sandbox, failure) => return failure.is_some(),
            (BreakerOwner::Backend(_), Some(_)) => return false,
            // What has not started says nothing of the tool.
            (BreakerOwner::Tool(_), Some(end)) => return end == End::SandboxGone,
            (_, None) => {}
        }
        match it.end {
            Some((_, HandlerEnd::Scripted(End::Transient | End::Harmless | End::Panic))) => true,
            // The handler was cut off, or was cancelled and is about to stop.
            None | Some((_, HandlerEnd::CutShort | HandlerEnd::Stopped)) => true,
            // A blocking handler may end as scripted after it was cut off.
            Some((_, HandlerEnd::Scripted(_))) => {
                tool.is_some_and(|tool| tool.placement == Placement::Blocking)
            }
        }
    }
}
