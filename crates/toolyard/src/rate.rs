//! How often a tool's attempts may start, and who waits for that (RT-10, RT-3).
//!
//! ```text
//!   attempt ──► take ──► a token, and nobody waits: now
//!                 └────► enqueue ──► in line, first come first served ──► due: granted, or expired after 5 s
//!                           └──────► it would be longer than that: TooLong, at once
//! ```
//!
//! A server's hint pauses the line for everybody. No clock is read and no timer is set here: whoever drives the line
//! calls [`due`](RateLine::due) after each change and at the instant that it gives.

mod bucket;
mod line;

#[cfg(test)]
mod tests;

pub(crate) use line::Ticket;

use bucket::Bucket;
use line::Line;
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::Rate;

/// The longest that an attempt waits for its token (RT-10).
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(5);

/// The longest that a server's hint pauses a line: no server stops a tool for good.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Whether an attempt may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Now; its token is taken.
    Now,
    /// It has to stand in line.
    Wait,
}

/// The wait would be longer than it may be: `rate_limited`, not started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no token within the time an attempt may wait; there is one in {retry_after:?}")]
pub(crate) struct TooLong {
    /// After how long one who comes anew has not to wait, if nobody comes before.
    pub(crate) retry_after: Duration,
}

/// What has become of those in line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Due<W> {
    /// These have their token, in the order in which they came.
    pub(crate) granted: Vec<W>,
    /// These have waited as long as they may, or will not be served in that time: `rate_limited`, not started.
    pub(crate) expired: Vec<W>,
    /// What those that expired are told: after how long there is a token for one who comes anew.
    pub(crate) retry_after: Duration,
    /// When the next of those who still wait is to be looked at.
    pub(crate) next: Option<Instant>,
}

/// The line of one tool, of waiters `W`.
///
/// A tool without a rate has one too, for the pauses; as long as there is none it costs one relaxed load an attempt.
#[derive(Debug)]
pub(crate) struct RateLine<W> {
    /// No rate, no pause, nobody in line: nothing to look at.
    is_free: AtomicBool,
    line: Mutex<Line<W>>,
}

impl<W> RateLine<W> {
    /// An empty line, at the begin of its rate's first burst.
    pub(crate) fn new(rate: Option<Rate>, wait_max: Duration, now: Instant) -> Self {
        let bucket = rate.map(|rate| Bucket::new(rate, now));
        Self { is_free: AtomicBool::new(bucket.is_none()), line: Mutex::new(Line::new(bucket, wait_max)) }
    }

    /// Takes a token for an attempt, if there is one and nobody waits.
    pub(crate) fn take(&self, now: Instant) -> Taken {
        if self.is_free.load(Ordering::Relaxed) {
            return Taken::Now;
        }
        let mut line = self.line();
        let taken = line.take(now);
        self.note(&line);
        taken
    }

    /// Stands in line.
    ///
    /// # Errors
    /// [`TooLong`] if it is known that the wait would be longer than it may be.
    pub(crate) fn enqueue(&self, now: Instant, waiter: W) -> Result<Ticket, TooLong> {
        let mut line = self.line();
        let until = line.admit(now)?;
        let ticket = line.enqueue(waiter, until);
        self.note(&line);
        Ok(ticket)
    }

    /// Lets go whom the rate allows, and those who have waited too long.
    pub(crate) fn due(&self, now: Instant) -> Due<W> {
        let mut line = self.line();
        let due = line.due(now);
        self.note(&line);
        due
    }

    /// Leaves the line at once. `None` if it is no longer in it.
    pub(crate) fn leave(&self, ticket: Ticket) -> Option<W> {
        let mut line = self.line();
        let waiter = line.leave(ticket);
        self.note(&line);
        waiter
    }

    /// Sends everybody away; gives who that is.
    pub(crate) fn clear(&self) -> Vec<W> {
        let mut line = self.line();
        let waiters = line.clear();
        self.note(&line);
        waiters
    }

    /// Lets nobody go before `until`, or [`PAUSE_MAX`] from now if that is sooner (RT-3). A pause is never cut
    /// short by another.
    pub(crate) fn pause_until(&self, now: Instant, until: Instant) {
        let mut line = self.line();
        line.pause_until(now, until.min(now + PAUSE_MAX));
        self.note(&line);
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.line().waiting()
    }

    fn note(&self, line: &Line<W>) {
        self.is_free.store(line.is_free(), Ordering::Relaxed);
    }

    fn line(&self) -> MutexGuard<'_, Line<W>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
