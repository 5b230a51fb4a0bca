//! The machine: where a breaker is, and what moves it (CB-1). Time is what has passed since any moment that stays
//! the same for a breaker.

use super::{
    Counts, OpenFor, Transition,
    window::{Slice, Slicing, Window},
};
use std::time::Duration;
use toolyard_core::{BreakerPolicy, BreakerState, error::BreakerVerdict};

/// When to ask again while a probe runs, which may end at any time.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// Which stretch between two moves of a breaker it is. It comes again after 2^32 moves, and no attempt takes so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Generation(pub(super) u32);

impl Generation {
    fn pass(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }
}

/// The right to one attempt. A copy that is used twice, or late, moves nothing: its generation tells (CB-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission {
    pub(super) generation: Generation,
    pub(super) is_probe: bool,
}

/// A circuit breaker without clock, chance or lock.
#[derive(Debug)]
pub(crate) struct Breaker {
    policy: BreakerPolicy,
    slicing: Slicing,
    window: Window,
    /// Failures since the last success.
    in_a_row: u32,
    /// Another one after every move, every reset and every probe let go.
    generation: Generation,
    state: State,
}

#[derive(Debug)]
enum State {
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
    /// A closed one.
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            slicing: Slicing::new(policy.window()),
            window: Window::default(),
            in_a_row: 0,
            generation: Generation::default(),
            state: State::Closed,
        }
    }

    /// Whether a call would be admitted now; it changes nothing (CB-7).
    pub(crate) fn peek(&self, now: Duration) -> Result<(), OpenFor> {
        let retry_after = match &self.state {
            State::Closed | State::ForcedClosed => return Ok(()),
            State::Open { until, .. } => until.saturating_sub(now),
            State::HalfOpen { probe: None, .. } => return Ok(()),
            State::HalfOpen { probe: Some(probe), .. } => {
                probe.expires_at.saturating_sub(now).min(PROBE_WAIT)
            }
            State::ForcedOpen => return Err(self.refuse(self.policy.open_for())),
        };
        if retry_after.is_zero() { Ok(()) } else { Err(self.refuse(retry_after)) }
    }

    /// Admits an attempt, or says for how long not. An attempt that is let go when the time open is over is the
    /// probe; if nobody says how it ended, the next one is, at the latest after `attempt_timeout` (CB-5).
    pub(crate) fn admit(
        &mut self,
        now: Duration,
        attempt_timeout: Duration,
    ) -> (Result<Admission, OpenFor>, Option<Transition>) {
        if let Err(open) = self.peek(now) {
            return (Err(open), None);
        }
        let (opens, moved) = match self.state {
            State::Open { opens, .. } => (opens, Some(self.go(State::HalfOpen { opens, probe: None }))),
            State::HalfOpen { opens, .. } => (opens, None),
            State::Closed | State::ForcedClosed | State::ForcedOpen => {
                return (Ok(Admission { generation: self.generation, is_probe: false }), None);
            }
        };
        self.generation.pass();
        let probe = Probe { generation: self.generation, expires_at: now.saturating_add(attempt_timeout) };
        self.state = State::HalfOpen { opens, probe: Some(probe) };
        (Ok(Admission { generation: self.generation, is_probe: true }), moved)
    }

    /// Notes how an attempt ended. `chance`, from 0 to below 1, moves the time open if that is what follows.
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
            (State::Closed, BreakerVerdict::Failure) if self.is_too_much() => Some(self.open(now, 1, chance)),
            (State::HalfOpen { opens, .. }, BreakerVerdict::Failure) => {
                Some(self.open(now, opens.saturating_add(1), chance))
            }
            (State::HalfOpen { .. }, BreakerVerdict::Success) => Some(self.close()),
            _ => None,
        }
    }

    /// Takes back the slot of a probe of which nobody will say how it ended; the next call is the probe (CB-5).
    pub(crate) fn give_back(&mut self, admission: Admission) {
        if self.is_current(admission)
            && let State::HalfOpen { probe, .. } = &mut self.state
        {
            *probe = None;
        }
    }

    /// Has every call refused until it is reset or forced closed.
    pub(crate) fn force_open(&mut self) -> Option<Transition> {
        (!matches!(self.state, State::ForcedOpen)).then(|| self.go(State::ForcedOpen))
    }

    /// Has every call pass until it is reset or forced open.
    pub(crate) fn force_closed(&mut self) -> Option<Transition> {
        (!matches!(self.state, State::ForcedClosed)).then(|| self.go(State::ForcedClosed))
    }

    /// Closes it and forgets what was: the moves that takes, in order. There is no move from open to closed
    /// (CB-10), so an open one is forced closed on its way.
    pub(crate) fn reset(&mut self) -> Vec<Transition> {
        match self.state() {
            BreakerState::Closed => {
                self.forget();
                Vec::new()
            }
            BreakerState::ForcedOpen | BreakerState::ForcedClosed => vec![self.close()],
            BreakerState::Open | BreakerState::HalfOpen => vec![self.go(State::ForcedClosed), self.close()],
        }
    }

    /// Where it is.
    pub(crate) fn state(&self) -> BreakerState {
        match self.state {
            State::Closed => BreakerState::Closed,
            State::Open { .. } => BreakerState::Open,
            State::HalfOpen { .. } => BreakerState::HalfOpen,
            State::ForcedOpen => BreakerState::ForcedOpen,
            State::ForcedClosed => BreakerState::ForcedClosed,
        }
    }

    /// What its window holds now.
    pub(crate) fn counts(&mut self, now: Duration) -> Counts {
        self.window.advance(self.slicing.slice_at(now));
        self.window.sum()
    }

    /// Its generation, if every call passes.
    pub(super) fn passing(&self) -> Option<Generation> {
        matches!(self.state, State::Closed | State::ForcedClosed).then_some(self.generation)
    }

    /// Adds successes that move nothing.
    pub(super) fn add_successes(&mut self, slice: Slice, successes: u64) {
        self.in_a_row = 0;
        self.window.add(slice, Counts { successes, failures: 0 });
    }

    fn add_failure(&mut self, slice: Slice) {
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.window.add(slice, Counts { successes: 0, failures: 1 });
    }

    /// CB-6: whether what becomes of it may move the machine.
    fn is_current(&self, admission: Admission) -> bool {
        match &self.state {
            State::HalfOpen { probe, .. } => {
                probe.as_ref().is_some_and(|probe| probe.generation == admission.generation)
            }
            _ => admission.generation == self.generation,
        }
    }

    /// CB-2.
    fn is_too_much(&self) -> bool {
        let counts = self.window.sum();
        let of_all = counts.failures >= u64::from(self.policy.failures_min().get())
            && counts.failure_ratio() >= self.policy.ratio();
        let in_a_row = self.policy.consecutive().is_some_and(|most| self.in_a_row >= most.get());
        of_all || in_a_row
    }

    /// CB-4. The jitter comes last, so that breakers at the longest time do not probe together either.
    fn open(&mut self, now: Duration, opens: u32, chance: f64) -> Transition {
        debug_assert!((0.0..1.0).contains(&chance), "{chance}");
        let doublings = 1_u32.checked_shl(opens.saturating_sub(1)).unwrap_or(u32::MAX);
        let time = self.policy.open_for().saturating_mul(doublings).min(self.policy.open_max());
        let share = 1.0 + self.policy.jitter() * (2.0 * chance - 1.0);
        let time = Duration::try_from_secs_f64(time.as_secs_f64() * share).unwrap_or(time);
        self.go(State::Open { until: now.saturating_add(time), opens })
    }

    /// What failed before it opened says nothing of the tool that has come back.
    fn close(&mut self) -> Transition {
        self.forget();
        self.go(State::Closed)
    }

    fn forget(&mut self) {
        self.window.clear();
        self.in_a_row = 0;
        self.generation.pass();
    }

    fn refuse(&self, retry_after: Duration) -> OpenFor {
        OpenFor { state: self.state(), retry_after }
    }

    fn go(&mut self, to: State) -> Transition {
        let from = self.state();
        self.state = to;
        self.generation.pass();
        let moved = Transition { from, to: self.state() };
        debug_assert!(moved.from.may_become(moved.to), "CB-10: {moved:?}");
        moved
    }
}
