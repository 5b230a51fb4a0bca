//! How long calls may wait, and by when they must have ended (V3).
//!
//! ```text
//!   ready ──────── queue_timeout ────────► queue_timeout, if it still waits
//!   ready ───────── call_deadline ─────────────────────────► deadline_exceeded, waiting or running
//!                   (the least of its own and those of the calls above it)
//! ```
//!
//! One task per batch watches over its waiting calls that have a limit; without limits there is no task.

use super::batch::BatchState;
use super::in_flight::InFlight;
use super::life::Limited;
use super::progress::Bid;
use super::refusals::Refusal;
use parking_lot::{Mutex, MutexGuard};
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use toolyard_core::{CallError, TimeoutScope};

/// Why a waiting call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Queue(Duration),
    Deadline,
}

impl Limit {
    fn error(self) -> CallError {
        match self {
            Self::Queue(limit) => Refusal::QueueTimeout(limit),
            Self::Deadline => Refusal::PastDeadline,
        }
        .error()
    }
}

/// When the wait of some neighbouring calls, `first` to `last`, reaches its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alarm {
    at: Instant,
    first: u32,
    last: u32,
    limit: Limit,
}

impl Alarm {
    fn of(index: u32, at: Instant, limit: Limit) -> Self {
        Self { at, first: index, last: index, limit }
    }

    /// Merges the alarm of the next call into this one if they are alike; returns whether it did.
    fn try_merge(&mut self, next: Self) -> bool {
        let goes_on =
            (self.at, self.limit) == (next.at, next.limit) && self.last.checked_add(1) == Some(next.first);
        if goes_on {
            self.last = next.last;
        }
        goes_on
    }
}

/// The alarms of a batch's waiting calls, the next one first.
#[derive(Default)]
pub(crate) struct Alarms {
    set: Mutex<Set>,
    /// Has its own allocation, so that waiting for it does not keep the batch alive.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Set {
    heap: BinaryHeap<Reverse<Alarm>>,
    /// The one added last, not in the heap yet: calls of a run that begin to wait one after another share it.
    latest: Option<Alarm>,
    /// Whether a task watches over them.
    watched: bool,
}

impl Set {
    /// Adds an alarm; returns whether it is before all others.
    fn add(&mut self, alarm: Alarm) -> bool {
        if self.latest.as_mut().is_some_and(|latest| latest.try_merge(alarm)) {
            return false;
        }
        let before = self.latest.replace(alarm);
        self.heap.extend(before.map(Reverse));
        self.heap.peek().is_none_or(|Reverse(next)| alarm.at < next.at)
    }
}

impl Alarms {
    fn set(&self) -> MutexGuard<'_, Set> {
        self.set.lock()
    }

    /// Takes the alarms that are due; returns when the next one is. If there is none, the watching task must end.
    fn due(&self, now: Instant) -> (Vec<Alarm>, Option<Instant>) {
        let mut set = self.set();
        let latest = set.latest.take();
        set.heap.extend(latest.map(Reverse));
        let mut due = Vec::new();
        while let Some(Reverse(alarm)) = set.heap.peek().copied() {
            if alarm.at > now {
                return (due, Some(alarm.at));
            }
            set.heap.pop();
            due.push(alarm);
        }
        set.watched = false;
        (due, None)
    }
}

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
        let alarms = self.alarms.get_or_init(Box::default);
        let (watched, is_next) = {
            let mut set = alarms.set();
            let is_next = set.add(alarm);
            (std::mem::replace(&mut set.watched, true), is_next)
        };
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
        let alarms = alive.alarms.get_or_init(Box::default);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_an_alarm_and_each_is_reported_once() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let alarms = Alarms::default();
        let add = |index, millis| alarms.set().add(Alarm::of(index, after(millis), Limit::Deadline));
        let calls =
            |due: Vec<Alarm>| due.iter().flat_map(|alarm| alarm.first..=alarm.last).collect::<Vec<_>>();
        assert!(add(0, 10), "the first is the next");
        assert!(!add(1, 10) && !add(2, 10));
        assert!(alarms.set().heap.is_empty(), "they are one");
        assert!(!add(4, 10), "not a neighbour, and not before the others");
        assert!(!add(5, 20), "at another time");
        assert!(add(6, 5), "before all others");
        assert!(!add(0, 20), "after the last comes no first");
        let (due, next) = alarms.due(after(4));
        assert!(due.is_empty() && next == Some(after(5)));
        let (due, next) = alarms.due(after(10));
        assert_eq!((calls(due), next), (vec![6, 0, 1, 2, 4], Some(after(20))));
        assert!(!add(1, 20), "its neighbour waits as long, and has been looked at before");
        let (due, next) = alarms.due(after(20));
        assert_eq!((calls(due), next), (vec![0, 1, 5], None));
    }
}
