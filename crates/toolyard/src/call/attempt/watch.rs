//! What ends a handler from outside while it waits: its timeout, its call's deadline, or a stop.
//!
//! ```text
//!   told to stop ─┬─ others of its key wait ──► its call ends alone, the handler goes on without a deadline
//!                 └─────────────────────────► Stop
//!   one timer ────┬─ deadline ──────────────► as above, or Over
//!                 └─ attempt timeout ───────► TimedOut if the tool has a timeout grace, else Over
//! ```
//!
//! This is all that a waiting call costs: a timer, for the earlier of its two instants, and its task's waker in its
//! slot.

use crate::call::{
    attempt::backend::Execution, deadline::earlier, in_flight::InFlight, nested::Clock, stop::Stop,
};
use futures::ready;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::time::{Instant, Sleep, sleep_until};

/// The bounds of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// The attempt timeout, for the message.
    pub(crate) timeout: Duration,
    /// When the attempt times out; `None` for a handler without a timeout. It moves while the handler is parked.
    pub(crate) cut_at: Option<Instant>,
    /// When the call must have ended; this does not move.
    pub(crate) deadline: Option<Instant>,
}

/// Why a running handler must end.
pub(crate) enum Signal {
    /// Its time is up, and it has no grace.
    Over(BoundReached),
    /// Its call is cancelled.
    Stop,
    /// It took longer than `limit`, and has `grace` to put its work in order.
    TimedOut { limit: Duration, grace: Duration },
}

/// Which bound a handler has reached.
pub(crate) enum BoundReached {
    /// The attempt timeout, which is this long.
    TimedOut(Duration),
    /// The deadline of its call.
    PastDeadline,
    /// It cannot resume: what it needs is held by zombies (CC-6c).
    Starved,
}

/// Why a call ends whose handler goes on for others.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DetachReason {
    /// Its caller has cancelled it.
    Cancelled,
    /// Its deadline has passed.
    PastDeadline,
}

/// Watches a handler that waits.
#[derive(Default)]
pub(crate) struct Watch {
    /// Created when there is an instant to wait for.
    timer: Option<Pin<Box<Sleep>>>,
}

impl Watch {
    /// Waits until the handler must end.
    pub(crate) fn poll(&mut self, execution: &Execution<'_>, cx: &mut Context<'_>) -> Poll<Signal> {
        loop {
            if execution.poll_stop(cx).is_ready() {
                match execution.cancelled() {
                    // The callers that still wait have deadlines of their own.
                    None if execution.try_detach(DetachReason::Cancelled) => continue,
                    _ => return Poll::Ready(Signal::Stop),
                }
            }
            let reached = ready!(self.poll_time(execution, cx));
            return Poll::Ready(match (reached, execution.timeout_grace()) {
                (BoundReached::TimedOut(limit), Some(grace)) => Signal::TimedOut { limit, grace },
                (BoundReached::PastDeadline, _) if execution.try_detach(DetachReason::PastDeadline) => {
                    continue;
                }
                (reached, _) => Signal::Over(reached),
            });
        }
    }

    /// Waits until the attempt times out or its call's deadline passes. The attempt's clock stands still while the
    /// handler is parked, the deadline's does not (V3).
    pub(crate) fn poll_time(
        &mut self,
        execution: &Execution<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<BoundReached> {
        let Bounds { timeout, cut_at, deadline } = execution.bounds();
        let clock = execution.clock(cx);
        let cut_at = match clock {
            Clock::Runs(stood) => cut_at.map(|at| at + stood),
            Clock::Stands | Clock::Starved => None,
        };
        let next = earlier(cut_at, deadline);
        match next.map(|at| (at, self.poll_until(at, cx))) {
            // Both may have passed since the last check; then the deadline counts.
            Some((at, Poll::Ready(()))) => {
                let now = execution.attempt.engine().clock.now().max(at);
                let is_past = deadline.is_some_and(|deadline| deadline <= now);
                Poll::Ready(if is_past {
                    BoundReached::PastDeadline
                } else {
                    BoundReached::TimedOut(timeout)
                })
            }
            _ if matches!(clock, Clock::Starved) => Poll::Ready(BoundReached::Starved),
            _ => Poll::Pending,
        }
    }

    fn poll_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(cx)
    }
}

impl Execution<'_> {
    pub(crate) fn call(&self) -> InFlight<'_> {
        self.attempt.at()
    }

    /// Waits until it is told to stop.
    fn poll_stop(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.call().poll_stop(cx)
    }

    /// Why it has been told to stop, if it has.
    fn cancelled(&self) -> Option<Stop> {
        self.call().cancelled()
    }

    /// Its bounds. A handler whose call has been detached has no deadline any more.
    fn bounds(&self) -> Bounds {
        let bounds = self.attempt.bounds();
        if self.call().is_detached() { Bounds { deadline: None, ..bounds } } else { bounds }
    }

    /// Its clock, which stands still only while it waits for calls of its own; the task is woken when that changes.
    fn clock(&self, cx: &Context<'_>) -> Clock {
        let parking = self.call().parking();
        parking.map_or(Clock::Runs(Duration::ZERO), |parking| parking.clock(cx.waker()))
    }

    /// How long it may go on, told to stop, after it has timed out (SC-5).
    fn timeout_grace(&self) -> Option<Duration> {
        self.attempt.work().entry.spec().settings.timeout_grace
    }

    /// Detaches the call, which has to end, if others wait for its handler (ID-4). Returns whether it did.
    fn try_detach(&self, why: DetachReason) -> bool {
        self.call().flight_run_by().is_some() && self.call().detach(|| self.attempt.detached_ending(why))
    }
}
