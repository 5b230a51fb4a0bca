//! How long calls may wait, and when they have to have ended (V3).
//!
//! ```text
//!   ready ──────── queue_timeout ────────► queue_timeout, if it still waits
//!   ready ───────── call_deadline ─────────────────────────► deadline_exceeded, waiting or running
//!                   (the least of its own and those of the calls above it)
//! ```
//!
//! One task a batch watches over those of its calls that wait and have a limit; without a limit there is none.

use super::ledger::{Delayed, Phase};
use super::progress::Bid;
use super::state::BatchState;
use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use toolyard_core::{CallError, ErrorKind, wording};

/// The limits that calls have unless they bring their own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    /// From ready to the permits.
    pub(crate) queue_timeout: Option<Duration>,
    /// From ready to the result.
    pub(crate) call_deadline: Option<Duration>,
}

/// Why a call ends that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Limit {
    Queue(Duration),
    Deadline,
}

impl Limit {
    fn error(self) -> CallError {
        match self {
            Self::Queue(limit) => {
                let limit = wording::Span(limit);
                CallError::new(ErrorKind::QueueTimeout, format!("the call waited {limit} for its turn"))
            }
            Self::Deadline => past_deadline(),
        }
    }
}

/// The error of a call whose deadline passed before it started.
pub(super) fn past_deadline() -> CallError {
    CallError::new(ErrorKind::DeadlineExceeded, "the call's deadline passed before it could start")
}

/// The limits of a batch's calls that wait, the next one first.
#[derive(Default)]
pub(super) struct Alarms {
    set: Mutex<Set>,
    /// In an allocation of its own: who waits for it does not keep the batch.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Set {
    heap: BinaryHeap<Reverse<(Instant, u32, Limit)>>,
    /// Whether a task watches over them.
    watched: bool,
}

impl Alarms {
    fn set(&self) -> std::sync::MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes those that are due; gives when the next one is. Without one the task that asks is to end.
    fn due(&self, now: Instant) -> (Vec<(u32, Limit)>, Option<Instant>) {
        let mut set = self.set();
        let mut due = Vec::new();
        while let Some(Reverse((at, index, limit))) = set.heap.peek().copied() {
            if at > now {
                return (due, Some(at));
            }
            set.heap.pop();
            due.push((index, limit));
        }
        set.watched = false;
        (due, None)
    }
}

/// The earlier of two moments, of which either may never come.
pub(crate) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (moment, None) | (None, moment) => moment,
    }
}

impl BatchState {
    /// When this call has to have ended that is ready now: the least of its own deadline and those above it.
    pub(crate) fn deadline_of(&self, index: u32, ready_at: Instant) -> Option<Instant> {
        let own = self.call(index).deadline.or(self.session.engine.waits.call_deadline);
        let own = own.and_then(|within| ready_at.checked_add(within));
        let above = self.nested.as_ref().and_then(|nested| nested.deadline);
        earlier(own, above)
    }

    /// Ends a call that waits, when it has waited long enough.
    pub(super) fn limit_wait(self: &Arc<Self>, index: u32, bid: &Bid) {
        let queue = self.session.engine.waits.queue_timeout;
        let queue =
            queue.and_then(|limit| Some((bid.ready_at.checked_add(limit)?, index, Limit::Queue(limit))));
        let deadline = self.deadline_of(index, bid.began()).map(|at| (at, index, Limit::Deadline));
        if let Some(alarm) = queue.into_iter().chain(deadline).min() {
            self.set_alarm(alarm);
        }
    }

    /// The same of a call that is in no line: it has a deadline and no queue timeout.
    pub(super) fn limit_rest(self: &Arc<Self>, index: u32, ready_at: Instant) {
        if let Some(at) = self.deadline_of(index, ready_at) {
            self.set_alarm((at, index, Limit::Deadline));
        }
    }

    fn set_alarm(self: &Arc<Self>, alarm: (Instant, u32, Limit)) {
        let alarms = self.alarms.get_or_init(Box::default);
        let watched = {
            let mut set = alarms.set();
            set.heap.push(Reverse(alarm));
            std::mem::replace(&mut set.watched, true)
        };
        if watched {
            alarms.changed.notify_one();
        } else {
            self.session.engine.tasks.spawn(watch(Arc::downgrade(self)));
        }
    }

    fn waits_too_long(&self, index: u32, limit: Limit, now: Instant) {
        let waits = match &*self.slots[index as usize].phase() {
            Phase::Queued { bid, .. } | Phase::Delayed(Delayed::Rate { bid, .. }) => match limit {
                // That may have been of the wait before: it stands in line for another attempt.
                Limit::Queue(limit) => bid.ready_at.checked_add(limit).is_some_and(|at| at <= now),
                Limit::Deadline => true,
            },
            Phase::Following { .. } | Phase::Delayed(Delayed::Backoff(_)) => limit == Limit::Deadline,
            _ => false,
        };
        if waits {
            self.end_unstarted(index, || limit.error());
        }
    }
}

/// Ends calls that wait too long. A batch that ends meanwhile is not kept for it.
async fn watch(batch: Weak<BatchState>) {
    while let Some(alive) = batch.upgrade() {
        let alarms = alive.alarms.get_or_init(Box::default);
        let now = alive.session.engine.clock.now();
        let (due, next) = alarms.due(now);
        due.into_iter().for_each(|(index, limit)| alive.waits_too_long(index, limit, now));
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
