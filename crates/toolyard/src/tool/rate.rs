//! How often a tool's attempts may start, and the line of those that wait for it (RT-10, RT-3).
//!
//! ```text
//!   attempt ──► take ──► a token is free, and nobody waits: now
//!                 └────► enqueue ──► in line, first in first out ──► due: granted, or expired after 5 s
//!                           └──────► the wait would be longer: TooLong, at once
//! ```
//!
//! A server's hint pauses the whole line. No clock is read and no timer is set here: the driver calls
//! [`due`](RateLine::due) after each change and at the instant it returned.

mod bucket;
mod line;
#[cfg(test)]
mod tests;

pub(crate) use line::Ticket;

use bucket::Bucket;
use line::Line;
use parking_lot::Mutex;
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
    fn has_token(self: Arc<Self>, index: u32);

    /// Ends call `index`, which would get its token too late.
    fn has_no_token(&self, index: u32, retry_after: Duration);

    /// Ends call `index`, whose line is no longer driven because its runtime was shut down.
    fn loses_line(&self, index: u32);
}

/// A call in line: its batch, and its index there.
pub(crate) struct Place {
    pub(crate) waiter: Arc<dyn Waiter>,
    pub(crate) index: u32,
}

/// Whether an attempt may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeResult {
    /// Now; its token is taken.
    Now,
    /// It has to wait in line.
    Wait,
}

/// The wait for a token would be longer than allowed: `rate_limited`, not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no token within the allowed wait; retry in {retry_after:?}")]
pub(crate) struct TooLong {
    /// How long until a newcomer would get a token at once, if nobody else joins.
    pub(crate) retry_after: Duration,
}

/// Which waiters leave the line.
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

/// The line of one tool, with waiters of type `W`.
///
/// A tool without a rate has one too, for pauses. As long as there is no pause, it costs one relaxed load per
/// attempt.
#[derive(Debug)]
pub(crate) struct RateLine<W> {
    /// No rate, no pause and nobody in line, so the lock need not be taken.
    is_free: AtomicBool,
    line: Mutex<Line<W>>,
}

impl<W> RateLine<W> {
    /// Makes an empty line with the full first burst.
    pub(crate) fn new(rate: Option<Rate>, wait_max: Duration, now: Instant) -> Self {
        let bucket = rate.map(|rate| Bucket::new(rate, now));
        Self { is_free: AtomicBool::new(bucket.is_none()), line: Mutex::new(Line::new(bucket, wait_max)) }
    }

    /// Takes a token for an attempt, if one is free and nobody waits.
    pub(crate) fn take(&self, now: Instant) -> TakeResult {
        if self.is_free.load(Ordering::Relaxed) {
            return TakeResult::Now;
        }
        let mut line = self.line.lock();
        let taken = line.take(now);
        self.note(&line);
        taken
    }

    /// Joins the line.
    ///
    /// # Errors
    /// [`TooLong`] if the wait is known to be longer than allowed.
    pub(crate) fn enqueue(&self, now: Instant, waiter: W) -> Result<Ticket, TooLong> {
        let mut line = self.line.lock();
        let until = line.admit(now)?;
        let ticket = line.enqueue(waiter, until);
        self.note(&line);
        Ok(ticket)
    }

    /// Removes the waiters that get a token and those that have waited too long.
    pub(crate) fn due(&self, now: Instant) -> Due<W> {
        let mut line = self.line.lock();
        let due = line.due(now);
        self.note(&line);
        due
    }

    /// Leaves the line at once. `None` if the waiter is no longer in it.
    pub(crate) fn leave(&self, ticket: Ticket) -> Option<W> {
        let mut line = self.line.lock();
        let waiter = line.leave(ticket);
        self.note(&line);
        waiter
    }

    /// Empties the line and returns all waiters.
    pub(crate) fn clear(&self) -> Vec<W> {
        let mut line = self.line.lock();
        let waiters = line.clear();
        self.note(&line);
        waiters
    }

    /// Grants no token before `until`, or before [`PAUSE_MAX`] from now if that is sooner (RT-3). A pause never
    /// shortens another.
    pub(crate) fn pause_until(&self, now: Instant, until: Instant) {
        let mut line = self.line.lock();
        line.pause_until(now, until.min(now + PAUSE_MAX));
        self.note(&line);
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.line.lock().waiting()
    }

    fn note(&self, line: &Line<W>) {
        self.is_free.store(line.is_free(), Ordering::Relaxed);
    }
}
