//! How long calls may wait, and by when they must have ended (V3).
//!
//! ```text
//!   ready ──────── queue_timeout ────────► queue_timeout, if it still waits
//!   ready ───────── call_deadline ─────────────────────────► deadline_exceeded, waiting or running
//!                   (the least of its own and those of the calls above it)
//! ```
//!
//! One task per batch watches over its waiting calls that have a limit; without limits there is no task.

use crate::call::{
    alarms::{Alarm, Limit},
    batch::BatchState,
    in_flight::InFlight,
    life::Limited,
    progress::Bid,
};
use std::{sync::Weak, time::Duration};
use tokio::time::Instant;
use toolyard_core::TimeoutScope;

/// The earlier of two instants, each of which may be absent.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (moment, None) | (None, moment) => moment,
    }
}

impl BatchState {
    fn earliest_deadline(&self, own: Option<Duration>, ready_at: Instant) -> Option<Instant> {
        let own = own.and_then(|within| ready_at.checked_add(within));
        let above = self.nested.as_ref().and_then(|nested| nested.deadline);
        earlier(own, above)
    }

    fn set_alarm(&self, alarm: Alarm) {
        let alarms = &self.make_rare().alarms;
        let (watched, is_next) = alarms.add(alarm);
        if !watched {
            self.session.engine.tasks.spawn(watch(self.me.clone()));
        } else if is_next {
            alarms.changed.notify_one(); // the watching task waits for a later one
        }
    }
}

impl InFlight<'_> {
    /// The instant by which a call that is ready at `ready_at` must have ended: the earliest of its own deadline and
    /// those of the calls above it.
    #[inline(always)]
    pub(crate) fn deadline_of(self, ready_at: Instant) -> Option<Instant> {
        let own = self.call().deadline.or(self.engine().waits.call_deadline);
        if own.is_none() && self.batch.nested.is_none() {
            return None; // the usual case
        }
        self.batch.earliest_deadline(own, ready_at)
    }

    /// The instant by which the last attempt of a call is cut off whose own timeout bounds all attempts together.
    #[inline]
    pub(crate) fn last_cut_at(self, first_granted_at: Instant) -> Option<Instant> {
        let timeout = self.call().timeout?;
        match timeout.scope() {
            TimeoutScope::Attempt => None,
            TimeoutScope::Call => first_granted_at.checked_add(timeout.duration()),
        }
    }

    /// The instant by which a waiting call must have ended, or have started its next attempt.
    #[inline(always)]
    pub(crate) fn deadline_of_bid(self, bid: &Bid) -> Option<Instant> {
        match &bid.progress {
            None => self.deadline_of(bid.ready_at),
            Some(progress) => {
                let last = self.last_cut_at(progress.granted_at);
                earlier(self.deadline_of(progress.ready_at), last)
            }
        }
    }

    /// Sets the alarm of a call in a line: its queue timeout or its deadline, whichever comes first.
    pub(crate) fn set_wait_alarms(self, bid: &Bid) {
        let (queue, deadline) = (self.engine().waits.queue_timeout, self.deadline_of_bid(bid));
        if queue.is_none() && deadline.is_none() {
            return; // the usual case
        }
        let queue = queue.and_then(|limit| {
            Some(Alarm::of(self.index, bid.ready_at.checked_add(limit)?, Limit::Queue(limit)))
        });
        let deadline = deadline.map(|at| Alarm::of(self.index, at, Limit::Deadline));
        if let Some(alarm) = queue.into_iter().chain(deadline).min() {
            self.batch.set_alarm(alarm);
        }
    }

    /// The same for a call that is in no line: it has a deadline and no queue timeout.
    pub(crate) fn set_deadline_alarm(self, ready_at: Instant) {
        if let Some(at) = self.deadline_of(ready_at) {
            self.batch.set_alarm(Alarm::of(self.index, at, Limit::Deadline));
        }
    }

    fn expire_if_waiting(self, limit: Limit, now: Instant) {
        let limited = self.slot().life().limited();
        let waits = match (limited, limit) {
            (None, _) | (Some(Limited::Deadline), Limit::Queue(_)) => false,
            (Some(_), Limit::Deadline) => true,
            // The alarm may be of an earlier wait: by now the call waits for another attempt.
            (Some(Limited::Attempt(since)), Limit::Queue(limit)) => {
                since.checked_add(limit).is_some_and(|at| at <= now)
            }
        };
        if waits {
            self.refuse(|| limit.error());
        }
    }
}

/// Ends calls that wait too long. This does not keep alive a batch that ends meanwhile.
async fn watch(batch: Weak<BatchState>) {
    while let Some(alive) = batch.upgrade() {
        let alarms = &alive.make_rare().alarms;
        let now = alive.session.engine.clock.now();
        let (due, next) = alarms.due(now);
        for Alarm { first, last, limit, .. } in due {
            (first..=last).for_each(|index| alive.at(index).expire_if_waiting(limit, now));
        }
        let Some(next) = next else { return };
        let changed = alarms.changed.clone();
        drop(alive);
        tokio::select! {
            biased;
            () = changed.notified() => {}
            () = tokio::time::sleep_until(next) => {}
        }
    }
}
