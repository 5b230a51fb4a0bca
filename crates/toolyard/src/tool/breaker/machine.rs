//! The state machine (CB-1). Times are durations since a fixed instant, which can be any but stays the same for a
//! breaker.

use super::{
    Counts, OpenFor, Transition,
    window::{Slice, Slicing, Window},
};
use std::time::Duration;
use toolyard_core::{BreakerPolicy, BreakerState, error::BreakerVerdict};

/// `retry_after` while a probe runs; the probe may end at any time.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// Numbers the periods between changes of a breaker. It repeats after 2^32 changes, and no attempt takes that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Generation(pub(crate) u32);

impl Generation {
    fn pass(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }
}

/// The right to one attempt. A copy used twice or late changes no state, because its generation is out of date
/// (CB-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(crate) generation: Generation,
    pub(crate) is_probe: bool,
}

/// A circuit breaker without clock, randomness or lock.
#[derive(Debug)]
pub(crate) struct Breaker {
    policy: BreakerPolicy,
    slicing: Slicing,
    window: Window,
    /// Failures since the last success.
    in_a_row: u32,
    /// Advances at every transition, every reset and every probe.
    generation: Generation,
    state: Circuit,
}

#[derive(Debug)]
enum Circuit {
    Closed,
    Open { until: Duration, opens: u32 },
    HalfOpen { opens: u32, probe: Option<Probe> },
    ForcedOpen,
    ForcedClosed,
}

/// The one probe in flight.
#[derive(Debug)]
struct Probe {
    generation: Generation,
    expires_at: Duration,
}

impl Breaker {
    /// Makes a closed breaker.
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            slicing: Slicing::new(policy.window()),
            window: Window::default(),
            in_a_row: 0,
            generation: Generation::default(),
            state: Circuit::Closed,
        }
    }

    /// Whether a call would be admitted now; changes nothing (CB-7).
    pub(crate) fn peek(&self, now: Duration) -> Result<(), OpenFor> {
        let retry_after = match &self.state {
            Circuit::Closed | Circuit::ForcedClosed => return Ok(()),
            Circuit::Open { until, .. } => until.saturating_sub(now),
            Circuit::HalfOpen { probe: None, .. } => return Ok(()),
            Circuit::HalfOpen { probe: Some(probe), .. } => {
                probe.expires_at.saturating_sub(now).min(PROBE_WAIT)
            }
            Circuit::ForcedOpen => return Err(self.refuse(self.policy.open_for())),
        };
        if retry_after.is_zero() { Ok(()) } else { Err(self.refuse(retry_after)) }
    }

    /// Admits an attempt, or says for how long it will not. The first attempt after the open time is the probe. If no
    /// result of it arrives, the next attempt becomes the probe, after `attempt_timeout` at the latest (CB-5).
    pub(crate) fn admit(
        &mut self,
        now: Duration,
        attempt_timeout: Duration,
    ) -> (Result<Admission, OpenFor>, Option<Transition>) {
        if let Err(open) = self.peek(now) {
            return (Err(open), None);
        }
        let (opens, moved) = match self.state {
            Circuit::Open { opens, .. } => {
                (opens, Some(self.move_to(Circuit::HalfOpen { opens, probe: None })))
            }
            Circuit::HalfOpen { opens, .. } => (opens, None),
            Circuit::Closed | Circuit::ForcedClosed | Circuit::ForcedOpen => {
                return (Ok(Admission { generation: self.generation, is_probe: false }), None);
            }
        };
        self.generation.pass();
        let probe = Probe { generation: self.generation, expires_at: now.saturating_add(attempt_timeout) };
        self.state = Circuit::HalfOpen { opens, probe: Some(probe) };
        (Ok(Admission { generation: self.generation, is_probe: true }), moved)
    }

    /// Records how an attempt ended. `chance`, in `0.0..1.0`, is the jitter of the open time if the breaker opens.
    pub(crate) fn record(
        &mut self,
        now: Duration,
        admission: Admission,
        verdict: BreakerVerdict,
        chance: f64,
    ) -> Option<Transition> {
        if !self.policy.is_enabled() {
            return None;
        }
        let slice = self.slicing.slice_at(now);
        match verdict {
            BreakerVerdict::Ignored => {
                self.give_back(admission);
                return None;
            }
            BreakerVerdict::Success => self.add_successes(slice, 1),
            BreakerVerdict::Failure => self.add_failure(slice),
        }
        if !self.is_current(admission) {
            return None;
        }
        match (&self.state, verdict) {
            (Circuit::Closed, BreakerVerdict::Failure) if self.should_open() => {
                Some(self.open(now, 1, chance))
            }
            (Circuit::HalfOpen { opens, .. }, BreakerVerdict::Failure) => {
                Some(self.open(now, opens.saturating_add(1), chance))
            }
            (Circuit::HalfOpen { .. }, BreakerVerdict::Success) => Some(self.close()),
            _ => None,
        }
    }

    /// Releases the slot of a probe that will have no result; the next call becomes the probe (CB-5).
    pub(crate) fn give_back(&mut self, admission: Admission) {
        if self.is_current(admission)
            && let Circuit::HalfOpen { probe, .. } = &mut self.state
        {
            *probe = None;
        }
    }

    /// Refuses every call until reset or forced closed.
    pub(crate) fn force_open(&mut self) -> Option<Transition> {
        (!matches!(self.state, Circuit::ForcedOpen)).then(|| self.move_to(Circuit::ForcedOpen))
    }

    /// Admits every call until reset or forced open.
    pub(crate) fn force_closed(&mut self) -> Option<Transition> {
        (!matches!(self.state, Circuit::ForcedClosed)).then(|| self.move_to(Circuit::ForcedClosed))
    }

    /// Closes the breaker and clears its counts. Returns the transitions that takes, in order: CB-10 has none from
    /// open to closed, so an open breaker is forced closed on the way.
    pub(crate) fn reset(&mut self) -> Vec<Transition> {
        match self.state() {
            BreakerState::Closed => {
                self.forget();
                Vec::new()
            }
            BreakerState::ForcedOpen | BreakerState::ForcedClosed => vec![self.close()],
            BreakerState::Open | BreakerState::HalfOpen => {
                vec![self.move_to(Circuit::ForcedClosed), self.close()]
            }
        }
    }

    /// Its state.
    pub(crate) fn state(&self) -> BreakerState {
        match self.state {
            Circuit::Closed => BreakerState::Closed,
            Circuit::Open { .. } => BreakerState::Open,
            Circuit::HalfOpen { .. } => BreakerState::HalfOpen,
            Circuit::ForcedOpen => BreakerState::ForcedOpen,
            Circuit::ForcedClosed => BreakerState::ForcedClosed,
        }
    }

    /// The counts of its window as of now.
    pub(crate) fn counts(&mut self, now: Duration) -> Counts {
        self.window.advance(self.slicing.slice_at(now));
        self.window.sum()
    }

    /// Its generation, if every call passes.
    pub(crate) fn passing(&self) -> Option<Generation> {
        matches!(self.state, Circuit::Closed | Circuit::ForcedClosed).then_some(self.generation)
    }

    /// Adds successes that cause no transition.
    pub(crate) fn add_successes(&mut self, slice: Slice, successes: u64) {
        self.in_a_row = 0;
        self.window.add(slice, Counts { successes, failures: 0 });
    }

    fn add_failure(&mut self, slice: Slice) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.window.add(slice, Counts { successes: 0, failures: 1 });
    }

    /// CB-6: whether the attempt's result may change the state.
    fn is_current(&self, admission: Admission) -> bool {
        match &self.state {
            Circuit::HalfOpen { probe, .. } => {
                probe.as_ref().is_some_and(|probe| probe.generation == admission.generation)
            }
            _ => admission.generation == self.generation,
        }
    }

    /// CB-2: whether the failures are enough to open.
    fn should_open(&self) -> bool {
        let counts = self.window.sum();
        let of_all = counts.failures >= u64::from(self.policy.failures_min().get())
            && counts.failure_ratio() >= self.policy.ratio();
        let in_a_row = self.policy.consecutive().is_some_and(|max| self.in_a_row >= max.get());
        of_all || in_a_row
    }

    /// CB-4. Jitter is applied after the cap, so that breakers at the longest open time do not probe in step either.
    fn open(&mut self, now: Duration, opens: u32, chance: f64) -> Transition {
        debug_assert!((0.0..1.0).contains(&chance), "{chance}");
        let doublings = 1_u32.checked_shl(opens.saturating_sub(1)).unwrap_or(u32::MAX);
        let time = self.policy.open_for().saturating_mul(doublings).min(self.policy.open_max());
        let share = 1.0 + self.policy.jitter() * (2.0 * chance - 1.0);
        let time = Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(time);
        self.move_to(Circuit::Open { until: now.saturating_add(time), opens })
    }

    /// Clears the counts, because failures from before say nothing about a tool that has recovered.
    fn close(&mut self) -> Transition {
        self.forget();
        self.move_to(Circuit::Closed)
    }

    fn forget(&mut self) {
        self.window.clear();
        self.in_a_row = 0;
        self.generation.pass();
    }

    fn refuse(&self, retry_after: Duration) -> OpenFor {
        OpenFor { state: self.state(), retry_after }
    }

    fn move_to(&mut self, to: Circuit) -> Transition {
        let from = self.state();
        self.state = to;
        self.generation.pass();
        let moved = Transition { from, to: self.state() };
        debug_assert!(moved.from.may_become(moved.to), "CB-10: {moved:?}");
        moved
    }
}
