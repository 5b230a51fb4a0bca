//! The time limits of a batch's waiting calls.

use crate::call::refusals::Refusal;
use parking_lot::{Mutex, MutexGuard};
use std::{cmp::Reverse, collections::BinaryHeap, sync::Arc, time::Duration};
use tokio::{sync::Notify, time::Instant};
use toolyard_core::CallError;

/// Why a waiting call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Limit {
    Queue(Duration),
    Deadline,
}

impl Limit {
    pub(super) fn error(self) -> CallError {
        match self {
            Self::Queue(limit) => Refusal::QueueTimeout(limit),
            Self::Deadline => Refusal::PastDeadline,
        }
        .error()
    }
}

/// When the wait of some neighbouring calls, `first` to `last`, reaches its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alarm {
    pub(super) at: Instant,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) limit: Limit,
}

impl Alarm {
    pub(super) fn of(index: u32, at: Instant, limit: Limit) -> Self {
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
    pub(super) changed: Arc<Notify>,
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

    /// Adds an alarm. Returns whether a task watches over them already, and whether this one is before all others.
    pub(super) fn add(&self, alarm: Alarm) -> (bool, bool) {
        let mut set = self.set();
        let is_next = set.add(alarm);
        (std::mem::replace(&mut set.watched, true), is_next)
    }

    /// Takes the alarms that are due; returns when the next one is. If there is none, the watching task must end.
    pub(super) fn due(&self, now: Instant) -> (Vec<Alarm>, Option<Instant>) {
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
