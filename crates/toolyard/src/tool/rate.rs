//! How often a tool's attempts may start, and the queue of those that wait for it (RT-10, RT-3).
//!
//! ```text
//!   attempt ──► take ──► a token is free, and nobody waits: now
//!                 └────► enqueue ──► in the queue, first in first out ──► due: granted, or expired after 5 s
//!                           └──────► the wait would be longer: TooLong, at once
//! ```
//!
//! A server's hint pauses the whole queue. No clock is read and no timer is set here: the driver calls
//! [`due`](RateQueue::due) after each change and at the instant it returned.

mod bucket;
mod queue;
#[cfg(test)]
mod tests;

pub(crate) use queue::Ticket;

use bucket::Bucket;
use parking_lot::Mutex;
use queue::Queue;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::Rate;

/// The longest that an attempt waits for its token (RT-10).
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(5);

/// The longest pause that a server's hint can cause, so that no server stops a tool for good.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(300);

/// A batch with calls that wait for tokens.
pub(crate) trait Waiter: Send + Sync {
    /// Continues with call `index`, which has its token.
    fn token_granted(self: Arc<Self>, index: u32);

    /// Ends call `index`, which would get its token too late.
    fn token_refused(&self, index: u32, retry_after: Duration);

    /// Ends call `index`, whose queue is no longer driven because its runtime was shut down.
    fn loses_queue(&self, index: u32);
}

/// A call in the queue: its batch, and its index there.
pub(crate) struct Place {
    pub(crate) waiter: Arc<dyn Waiter>,
    pub(crate) index: u32,
}

/// Whether an attempt may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeResult {
    /// Now; its token is taken.
    Now,
    /// It has to wait in the queue.
    Wait,
}

/// The wait for a token would be longer than allowed: `rate_limited`, not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no token within the allowed wait; retry in {retry_after:?}")]
pub(crate) struct TooLong {
    /// How long until a newcomer would get a token at once, if nobody else joins.
    pub(crate) retry_after: Duration,
}

/// Which waiters leave the queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due<W> {
    /// These have their token, in order of arrival.
    pub(crate) granted: Vec<W>,
    /// These have waited as long as allowed, or cannot be served in that time: `rate_limited`, not started.
    pub(crate) expired: Vec<W>,
    /// The `retry_after` of the expired: how long until a newcomer would get a token.
    pub(crate) retry_after: Duration,
    /// When `due` has to be called next, if anybody still waits.
    pub(crate) next: Option<Instant>,
}

/// The queue of one tool, with waiters of type `W`.
///
/// A tool without a rate has one too, for pauses. As long as there is no pause, it costs one relaxed load per
/// attempt.
#[derive(Debug)]
pub(crate) struct RateQueue<W> {
    /// No rate, no pause and nobody in the queue, so the lock need not be taken.
    is_free: AtomicBool,
    queue: Mutex<Queue<W>>,
}

impl<W> RateQueue<W> {
    /// Makes an empty queue with the full first burst.
    pub(crate) fn new(rate: Option<Rate>, wait_max: Duration, now: Instant) -> Self {
        let bucket = rate.map(|rate| Bucket::new(rate, now));
        Self { is_free: AtomicBool::new(bucket.is_none()), queue: Mutex::new(Queue::new(bucket, wait_max)) }
    }

    /// Takes a token for an attempt, if one is free and nobody waits.
    pub(crate) fn take(&self, now: Instant) -> TakeResult {
        if self.is_free.load(Ordering::Relaxed) {
            return TakeResult::Now;
        }
        let mut queue = self.queue.lock();
        let taken = queue.take(now);
        self.note(&queue);
        taken
    }

    /// Joins the queue.
    ///
    /// # Errors
    /// [`TooLong`] if the wait is known to be longer than allowed.
    pub(crate) fn enqueue(&self, now: Instant, waiter: W) -> Result<Ticket, TooLong> {
        let mut queue = self.queue.lock();
        let until = queue.admit(now)?;
        let ticket = queue.enqueue(waiter, until);
        self.note(&queue);
        Ok(ticket)
    }

    /// Removes the waiters that get a token and those that have waited too long.
    pub(crate) fn due(&self, now: Instant) -> Due<W> {
        let mut queue = self.queue.lock();
        let due = queue.due(now);
        self.note(&queue);
        due
    }

    /// Leaves the queue at once. `None` if the waiter is no longer in it.
    pub(crate) fn leave(&self, ticket: Ticket) -> Option<W> {
        let mut queue = self.queue.lock();
        let waiter = queue.leave(ticket);
        self.note(&queue);
        waiter
    }

    /// Empties the queue and returns all waiters.
    pub(crate) fn clear(&self) -> Vec<W> {
        let mut queue = self.queue.lock();
        let waiters = queue.clear();
        self.note(&queue);
        waiters
    }

    /// Grants no token before `until`, or before [`PAUSE_MAX`] from now if that is sooner (RT-3). A pause never
    /// shortens another.
    pub(crate) fn pause_until(&self, now: Instant, until: Instant) {
        let mut queue = self.queue.lock();
        queue.pause_until(now, until.min(now + PAUSE_MAX));
        self.note(&queue);
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.lock().waiting()
    }

    /// How many wait, and for how long there is a pause, if there is one.
    pub(crate) fn standing(&self, now: Instant) -> (usize, Option<Duration>) {
        let queue = self.queue.lock();
        (queue.waiting(), queue.paused_for(now))
    }

    fn note(&self, queue: &Queue<W>) {
        self.is_free.store(queue.is_free(), Ordering::Relaxed);
    }
}
