mod model;
mod rules;

use super::*;

/// A line whose waiters are numbers, with the current time.
pub(crate) struct Tool {
    pub(crate) queue: RateQueue<u32>,
    pub(crate) start: Instant,
    pub(crate) now: Instant,
}

impl Tool {
    /// A tool with this rate; none if empty.
    pub(crate) fn new(rate: &str) -> Self {
        let now = Instant::now();
        let rate = (!rate.is_empty()).then(|| rate.parse().unwrap());
        Self { queue: RateQueue::new(rate, WAIT_MAX, now), start: now, now }
    }

    pub(crate) fn pass_ms(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
    }

    pub(crate) fn take(&self) -> TakeResult {
        self.queue.take(self.now)
    }

    pub(crate) fn enqueue(&self, waiter: u32) -> Result<Ticket, TooLong> {
        self.queue.enqueue(self.now, waiter)
    }

    pub(crate) fn pause_ms(&self, millis: u64) {
        self.queue.pause_until(self.now, self.now + Duration::from_millis(millis));
    }

    pub(crate) fn due(&self) -> Due<u32> {
        self.queue.due(self.now)
    }

    /// Takes all tokens that are free now and returns how many.
    pub(crate) fn spend(&self) -> u32 {
        (0..).take_while(|_| self.take() == TakeResult::Now).fold(0, |count, _: u32| count + 1)
    }

    /// Calls `due` at each instant that it returns, until nobody waits. Returns who was served, and how many
    /// milliseconds after the start.
    pub(crate) fn run_out(&mut self) -> Vec<(u32, u128)> {
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
