//! The waiters for a token, in order of arrival.

use super::{Due, TakeResult, TooLong, bucket::Bucket};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// A place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

#[derive(Debug)]
struct Waiter<W> {
    waiter: W,
    /// The last instant at which it may be served.
    until: Instant,
}

/// The state behind the lock of a queue.
#[derive(Debug)]
pub(crate) struct Queue<W> {
    bucket: Option<Bucket>,
    wait_max: Duration,
    paused_until: Option<Instant>,
    waiters: BTreeMap<Ticket, Waiter<W>>,
    next: u64,
}

impl<W> Queue<W> {
    pub(crate) fn new(bucket: Option<Bucket>, wait_max: Duration) -> Self {
        Self { bucket, wait_max, paused_until: None, waiters: BTreeMap::new(), next: 0 }
    }

    pub(crate) fn is_free(&self) -> bool {
        self.bucket.is_none() && self.paused_until.is_none() && self.waiters.is_empty()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    pub(crate) fn take(&mut self, now: Instant) -> TakeResult {
        self.end_pause(now);
        if self.waiters.is_empty() && self.take_token(now) { TakeResult::Now } else { TakeResult::Wait }
    }

    /// Whether a newcomer will be served in time; returns the last instant for that.
    pub(crate) fn admit(&mut self, now: Instant) -> Result<Instant, TooLong> {
        self.end_pause(now);
        let (at, until) = (self.at(self.waiters.len(), now), now + self.wait_max);
        if at > until { Err(TooLong { retry_after: at - now }) } else { Ok(until) }
    }

    pub(crate) fn enqueue(&mut self, waiter: W, until: Instant) -> Ticket {
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiters.insert(ticket, Waiter { waiter, until });
        ticket
    }

    pub(crate) fn leave(&mut self, ticket: Ticket) -> Option<W> {
        self.waiters.remove(&ticket).map(|waiter| waiter.waiter)
    }

    pub(crate) fn clear(&mut self) -> Vec<W> {
        std::mem::take(&mut self.waiters).into_values().map(|waiter| waiter.waiter).collect()
    }

    pub(crate) fn pause_until(&mut self, now: Instant, until: Instant) {
        self.end_pause(now);
        self.paused_until = self.paused_until.max(Some(until).filter(|until| *until > now));
    }

    pub(crate) fn due(&mut self, now: Instant) -> Due<W> {
        self.end_pause(now);
        // A waiter that has waited too long gets no token, even if one is free (CC-9).
        let mut expired = self.leave_while(|_, first| first < now);
        let granted = self.leave_while(|queue, _| queue.take_token(now));
        // Waiters that cannot be served before a pause ends expire at once, like newcomers.
        expired.extend(self.leave_while(|queue, first| {
            first <= now || queue.paused_until.is_some_and(|paused| first < paused)
        }));
        let next = self.waiters.first_key_value().map(|(_, first)| first.until.min(self.at(0, now)));
        Due { granted, expired, retry_after: self.at(self.waiters.len(), now) - now, next }
    }

    /// Removes waiters from the front while `may_leave` holds for the last instant at which they may be served.
    fn leave_while(&mut self, may_leave: impl Fn(&Self, Instant) -> bool) -> Vec<W> {
        let mut left = Vec::new();
        while let Some((_, first)) = self.waiters.first_key_value() {
            if !may_leave(self, first.until) {
                break;
            }
            left.extend(self.waiters.pop_first().map(|(_, first)| first.waiter));
        }
        left
    }

    /// Takes a token, if one is free and there is no pause.
    fn take_token(&self, now: Instant) -> bool {
        self.paused_until.is_none() && self.bucket.as_ref().is_none_or(|bucket| bucket.take(now))
    }

    /// When a waiter with `ahead` others before it is served.
    fn at(&self, ahead: usize, now: Instant) -> Instant {
        let open = self.paused_until.map_or(now, |until| until.max(now));
        self.bucket.as_ref().map_or(open, |bucket| bucket.at(ahead, open))
    }

    pub(crate) fn paused_for(&self, now: Instant) -> Option<Duration> {
        let left = self.paused_until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }

    fn end_pause(&mut self, now: Instant) {
        self.paused_until = self.paused_until.filter(|until| *until > now);
    }
}
