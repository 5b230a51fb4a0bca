mod model;
mod rules;

use super::*;

/// A line whose waiters are numbers, with the current time.
pub(super) struct Tool {
    pub(super) line: RateLine<u32>,
    pub(super) start: Instant,
    pub(super) now: Instant,
}

impl Tool {
    /// A tool with this rate; none if empty.
    pub(super) fn new(rate: &str) -> Self {
        let now = Instant::now();
        let rate = (!rate.is_empty()).then(|| rate.parse().unwrap());
        Self { line: RateLine::new(rate, WAIT_MAX, now), start: now, now }
    }

    pub(super) fn pass_ms(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(super) fn take(&self) -> TakeResult {
        self.line.take(self.now)
    }

    pub(super) fn enqueue(&self, waiter: u32) -> Result<Ticket, TooLong> {
        self.line.enqueue(self.now, waiter)
    }

    pub(super) fn pause_ms(&self, millis: u64) {
        self.line.pause_until(self.now, self.now + Duration::from_millis(millis));
    }

    pub(super) fn due(&self) -> Due<u32> {
        self.line.due(self.now)
    }

    /// Takes all tokens that are free now and returns how many.
    pub(super) fn spend(&self) -> u32 {
        (0..).take_while(|_| self.take() == TakeResult::Now).fold(0, |count, _: u32| count + 1)
    }

    /// Calls `due` at each instant that it returns, until nobody waits. Returns who was served, and how many
    /// milliseconds after the start.
    pub(super) fn run_out(&mut self) -> Vec<(u32, u128)> {
        let mut went = Vec::new();
        loop {
            let due = self.due();
            assert!(due.expired.is_empty(), "{due:?}");
            let at = (self.now - self.start).as_millis();
            went.extend(due.granted.into_iter().map(|waiter| (waiter, at)));
            let Some(next) = due.next else { return went };
            assert!(next > self.now);
            self.now = next;
        }
    }
}
