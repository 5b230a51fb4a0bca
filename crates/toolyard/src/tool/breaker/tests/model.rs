//! A naive model of CB-2 … CB-10: it keeps every result in a list and counts only when asked.

use super::*;

/// An attempt, numbered in order of admission.
pub(crate) type Id = usize;

struct Call {
    /// How many transitions and resets the breaker had gone through when it was admitted.
    epoch: usize,
    is_probe: bool,
}

pub(crate) struct Model {
    policy: BreakerPolicy,
    pub(crate) state: BreakerState,
    epoch: usize,
    calls: Vec<Call>,
    /// The slice of each result and whether it was a success, since the breaker last closed.
    ends: Vec<(u128, bool)>,
    pub(crate) open_until: Duration,
    opens: u32,
    probe: Option<(Id, Duration)>,
}

impl Model {
    pub(crate) fn new(policy: BreakerPolicy) -> Self {
        Self {
            policy,
            state: Closed,
            epoch: 0,
            calls: Vec::new(),
            ends: Vec::new(),
            open_until: Duration::ZERO,
            opens: 0,
            probe: None,
        }
    }

    pub(crate) fn peek(&self, now: Duration) -> Result<(), OpenFor> {
        let retry_after = match (self.state, self.probe) {
            (Closed | ForcedClosed, _) => return Ok(()),
            (Open, _) if now >= self.open_until => return Ok(()),
            (Open, _) => self.open_until - now,
            (HalfOpen, Some((_, until))) if now < until => SECOND.min(until - now),
            (HalfOpen, _) => return Ok(()),
            (ForcedOpen, _) => self.policy.open_for(),
        };
        Err(OpenFor { state: self.state, retry_after })
    }

    pub(crate) fn admit(
        &mut self,
        now: Duration,
        timeout: Duration,
    ) -> (Result<Id, OpenFor>, Option<Transition>) {
        if let Err(open) = self.peek(now) {
            return (Err(open), None);
        }
        let moved = (self.state == Open).then(|| self.go(HalfOpen));
        let (id, is_probe) = (self.calls.len(), self.state == HalfOpen);
        if is_probe {
            self.probe = Some((id, now + timeout));
        }
        self.calls.push(Call { epoch: self.epoch, is_probe });
        (Ok(id), moved)
    }

    pub(crate) fn record(&mut self, now: Duration, id: Id, verdict: BreakerVerdict) -> Option<Transition> {
        if !self.policy.is_enabled() {
            return None;
        }
        if verdict == Ignored {
            self.give_back(id);
            return None;
        }
        let slice = now.as_nanos() / (self.policy.window() / 10).as_nanos();
        self.ends.push((slice, verdict == Success));
        let is_stale = self.calls[id].epoch != self.epoch || self.calls[id].is_probe && !self.has_slot(id);
        match (self.state, verdict) {
            _ if is_stale => None,
            (Closed, Failure) if self.is_too_much(slice) => Some(self.open(1)),
            (HalfOpen, Failure) => Some(self.open(self.opens + 1)),
            (HalfOpen, Success) => Some(self.close()),
            _ => None,
        }
    }

    pub(crate) fn give_back(&mut self, id: Id) {
        if self.has_slot(id) {
            self.probe = None;
        }
    }

    pub(crate) fn force(&mut self, to: BreakerState) -> Option<Transition> {
        (self.state != to).then(|| self.go(to))
    }

    pub(crate) fn reset(&mut self) -> Vec<Transition> {
        let mut moves = Vec::new();
        moves.extend(matches!(self.state, Open | HalfOpen).then(|| self.go(ForcedClosed)));
        self.ends.clear();
        self.epoch += 1;
        moves.extend((self.state != Closed).then(|| self.close()));
        moves
    }

    pub(crate) fn counts(&self, now: Duration) -> Counts {
        let slice = now.as_nanos() / (self.policy.window() / 10).as_nanos();
        let held = || self.ends.iter().filter(|(at, _)| at + 10 > slice);
        let count = |ok: bool| u64::try_from(held().filter(|end| end.1 == ok).count()).unwrap();
        Counts { successes: count(true), failures: count(false) }
    }

    /// The open time without jitter.
    pub(crate) fn nominal(&self) -> Duration {
        let longer = (1..self.opens).fold(self.policy.open_for(), |time, _| time * 2);
        longer.min(self.policy.open_max())
    }

    fn has_slot(&self, id: Id) -> bool {
        self.state == HalfOpen && self.probe.is_some_and(|(probe, _)| probe == id)
    }

    fn is_too_much(&self, slice: u128) -> bool {
        let held: Vec<_> = self.ends.iter().filter(|(at, _)| at + 10 > slice).collect();
        let failed = held.iter().filter(|end| !end.1).count();
        let share = failed as f64 / held.len() as f64;
        let enough = failed >= usize::try_from(self.policy.failures_min().get()).unwrap();
        let in_a_row = self.ends.iter().rev().take_while(|end| !end.1).count();
        let most = self.policy.consecutive().map(|most| usize::try_from(most.get()).unwrap());
        enough && share >= self.policy.ratio() || most.is_some_and(|most| in_a_row >= most)
    }

    fn open(&mut self, opens: u32) -> Transition {
        self.opens = opens;
        self.go(Open)
    }

    fn close(&mut self) -> Transition {
        self.ends.clear();
        self.go(Closed)
    }

    fn go(&mut self, to: BreakerState) -> Transition {
        let from = std::mem::replace(&mut self.state, to);
        self.epoch += 1;
        self.probe = None;
        Transition { from, to }
    }
}
