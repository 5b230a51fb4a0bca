//! I8: breakers make legal moves for a reason, nothing starts while one is open, and only one probe at a time runs
//! while it is half-open (CB-2 to CB-10).

use super::{SLACK_US, Seen, Violation, seen::Try};
use crate::sim::{
    Fact, Said,
    program::{Care, End, Index, Of, Where},
};
use toolyard::{BreakerPolicy, BreakerState, ErrorKind, EventKind, Reason};

/// The event of an attempt may come this long after its breaker admitted it.
const MOTION_US: u64 = 50_000;

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let tools = 0..index.program.tools.len();
    for of in tools.map(Of::Tool).chain((0..2).map(Of::Backend)) {
        let watched = Watched::new(index, seen, of);
        violations.extend(watched.moves());
        violations.extend(watched.starts());
        violations.extend(watched.refusals());
    }
    violations
}

/// A period in which a breaker was in one state.
#[derive(Debug, Clone, Copy)]
struct Stand {
    state: BreakerState,
    at_us: u64,
    place: usize,
    /// The state before.
    from: BreakerState,
}

/// A breaker and everything observed of it.
struct Watched<'a> {
    index: &'a Index<'a>,
    seen: &'a Seen<'a>,
    of: Of,
    policy: BreakerPolicy,
    stands: Vec<Stand>,
    /// The attempts that it admitted and their calls, in the order of their events.
    tries: Vec<(u32, &'a Try)>,
}

impl<'a> Watched<'a> {
    fn new(index: &'a Index<'a>, seen: &'a Seen<'a>, of: Of) -> Self {
        let closed = BreakerState::Closed;
        let mut stands = vec![Stand { state: closed, at_us: 0, place: 0, from: closed }];
        for (place, entry) in seen.entries.iter().enumerate() {
            let Fact::Event(event) = &entry.fact else { continue };
            let EventKind::BreakerTransition { tool_name, backend, from, to } = &event.kind else { continue };
            let name = match of {
                Of::Tool(_) => tool_name,
                Of::Backend(_) => backend,
            };
            if name.as_deref() == Some(&of.name()) {
                stands.push(Stand { state: *to, at_us: entry.at_us, place, from: *from });
            }
        }
        let passes = |node: &u32| {
            let node = index.nodes.get(node)?;
            node.tool.filter(|tool| of.guards(node.call.tool, tool))
        };
        let lives = seen.calls.iter().filter(|(node, _)| passes(node).is_some());
        let mut tries: Vec<_> =
            lives.flat_map(|(node, life)| life.tries.iter().map(|it| (*node, it))).collect();
        tries.sort_by_key(|(_, it)| it.place);
        let policy = match of {
            Of::Tool(tool) => {
                index.program.tools.get(tool).map_or(Care::NONE.breaker, |tool| tool.care.breaker)
            }
            Of::Backend(_) => index.program.backend_breaker(),
        };
        Self { index, seen, of, policy, stands, tries }
    }

    fn broken(&self, what: String) -> Violation {
        Violation::new("I8", format!("the breaker of {}: {what}", self.of.name()))
    }

    /// The state it was in at this position of the journal.
    fn at(&self, place: usize) -> &Stand {
        let mut stands = self.stands.iter().rev();
        stands.find(|stand| stand.place <= place).unwrap_or(&self.stands[0])
    }

    fn moves(&self) -> Vec<Violation> {
        let (mut violations, mut opens) = (Vec::new(), 0_u32);
        for (before, now) in self.stands.iter().zip(&self.stands[1..]) {
            let Stand { state, at_us, from, .. } = *now;
            if from != before.state || !from.may_become(state) {
                let what =
                    format!("at {at_us} us it goes from {from:?} to {state:?}, and was {:?}", before.state);
                violations.push(self.broken(what));
            }
            if (state.is_forced() || from.is_forced()) && !self.was_told(now) {
                violations.push(self.broken(format!("at {at_us} us it is {state:?}, and nobody said so")));
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
                        let what =
                            format!("at {at_us} us it is half open after {stood_us} us, not {least_us}");
                        violations.push(self.broken(what));
                    }
                }
                _ => {}
            }
        }
        violations
    }

    /// Whether an operator caused the move.
    fn was_told(&self, stand: &Stand) -> bool {
        let mut told = self.seen.entries[..stand.place].iter().filter(|entry| entry.at_us == stand.at_us);
        told.any(|entry| matches!(entry.fact, Fact::Operated(of) if of == self.of))
    }

    /// The least time it stays open (CB-4).
    fn open_us(&self, opens: u32) -> u64 {
        let time = self.policy.open_for().saturating_mul(1 << opens.saturating_sub(1).min(20));
        (time.min(self.policy.open_max()).as_micros() as f64 * (1.0 - self.policy.jitter())) as u64
    }

    /// Checks that enough failures happened since it was closed (CB-2).
    fn too_few_failures(&self, before: &Stand, now: &Stand) -> Option<Violation> {
        let least = self
            .policy
            .consecutive()
            .map_or(u32::MAX, |most| most.get())
            .min(self.policy.failures_min().get());
        let is_in = |place: usize| (before.place..=now.place).contains(&place);
        // The event of a failed call comes after the breaker has counted the failure.
        let over = |it: &Try| {
            it.over().is_none_or(|(_, place)| is_in(place) || place > now.place) && it.place < now.place
        };
        let failed =
            self.tries.iter().filter(|(node, it)| over(it) && self.may_have_failed(*node, it)).count();
        ((failed as u64) < u64::from(least)).then(|| {
            self.broken(format!("at {} us it opens after {failed} failures, not {least}", now.at_us))
        })
    }

    /// Checks that nothing starts while it is open, and that only one probe at a time runs while it is half-open.
    fn starts(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (at, (node, it)) in self.tries.iter().enumerate() {
            let stand = self.at(it.place);
            let shut = matches!(stand.state, BreakerState::Open | BreakerState::ForcedOpen);
            if shut && it.at_us > stand.at_us + MOTION_US {
                let what = format!(
                    "c{node} starts at {} us, and it is {:?} since {} us",
                    it.at_us, stand.state, stand.at_us
                );
                violations.push(self.broken(what));
            }
            if stand.state != BreakerState::HalfOpen {
                continue;
            }
            // Earlier attempts that it admitted as probes as well.
            let mut others = self.tries[..at].iter().filter(|(_, other)| other.place > stand.place);
            let still = |other: &Try| {
                let expires_us =
                    other.at_us.saturating_sub(MOTION_US) + 1000 * self.timeout_ms().min(u64::MAX / 2000);
                other.over().is_none_or(|(_, over)| over > it.place) && it.at_us < expires_us
            };
            if let Some((other, _)) = others.find(|(other, probe)| still(probe) && other != node) {
                violations
                    .push(self.broken(format!("c{node} is a probe at {} us, and c{other} is one", it.at_us)));
            }
        }
        violations
    }

    /// The shortest attempt timeout among the attempts it admitted.
    fn timeout_ms(&self) -> u64 {
        let nodes = self.tries.iter().filter_map(|(node, _)| self.index.nodes.get(node));
        let own = nodes.filter_map(|node| Some(node.call.timeout_ms.unwrap_or(node.tool?.timeout_ms)));
        own.min().unwrap_or(u64::MAX)
    }

    /// Checks the `circuit_open` refusals: the state they name is the true one, and if it is half-open, a probe exists.
    fn refusals(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let told = format!("'{}' fails often at present; its circuit is ", self.of.name());
        // With hooks, the event of a refusal comes a while after the check.
        if self.index.program.hooks {
            return violations;
        }
        for (number, life) in &self.seen.calls {
            let Some((place, failure)) = life.failure().filter(|(_, it)| it.code == ErrorKind::CircuitOpen)
            else {
                continue;
            };
            let Some(word) =
                failure.message.strip_prefix(&told).filter(|_| failure.reason != Some(Reason::Zombie))
            else {
                continue;
            };
            let (stand, at_us) = (self.at(place), self.seen.entries[place].at_us);
            if !word.starts_with(&format!("{},", stand.state.as_str())) {
                let what =
                    format!("c{number} is told at {at_us} us that it is {word}, and it is {:?}", stand.state);
                violations.push(self.broken(what));
            }
            let in_flight = |it: &Try| {
                it.at_us <= at_us + SLACK_US
                    && it.over().is_none_or(|(over_us, _)| over_us + SLACK_US >= at_us)
            };
            if stand.state == BreakerState::HalfOpen && !self.tries.iter().any(|(_, it)| in_flight(it)) {
                let what = format!("c{number} is refused at {at_us} us for a probe, and there is none");
                violations.push(Violation::new("CB-5", self.broken(what).what));
            }
        }
        violations
    }

    /// Whether the breaker may have counted the attempt as failed.
    fn may_have_failed(&self, node: u32, it: &Try) -> bool {
        let tool = self.index.nodes.get(&node).and_then(|node| node.tool);
        match it.said {
            Some((_, Said::End(End::Transient | End::Harmless | End::Panic))) => true,
            // The handler was cut off, or was cancelled and is about to stop.
            None | Some((_, Said::CutShort | Said::Stopped)) => true,
            // A blocking handler may end as scripted after it was cut off.
            Some((_, Said::End(_))) => tool.is_some_and(|tool| tool.placement == Where::Blocking),
        }
    }
}
