//! For whom the writer waits before it commits a group (JR-2).
//!
//! ```text
//!   group told ─► those who were told give their next records ─┬─ as many wait as are in flight ─► the next one is complete
//!       │         which are applied meanwhile                  └─ a millisecond since is over ──► it is committed as it is
//!       └─ few in flight, or the last times not all came back ─► it is committed once nothing more is there
//! ```
//!
//! Without this, the first one that comes back makes a group of its own, and the others wait for its commit: the cost of a
//! commit, which is the larger part of what a small group costs, is then paid by few.

use std::time::{Duration, Instant};

/// How long the next group waits from then on, at most, for those who were told of the last one.
const WAIT: Duration = Duration::from_millis(1);
/// As few as these are not worth waiting for.
const FEW: usize = 3;
/// How many groups wait for nobody, at most, after one for which too few had come back.
const SKIPPED_MAX: u32 = 64;

/// Who is expected.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    /// How many wait once all are back, and until when they are waited for.
    expected: usize,
    until: Option<Instant>,
    /// How many groups are still to wait for nobody, and how many after the next time that it was in vain.
    skipped: u32,
    next_skipped: u32,
}

impl Gathering {
    /// So many are told, at this time, that their records are durable, while so many wait already.
    pub(super) fn told(&mut self, told: usize, waiting: usize, now: Instant) {
        let expected = told + waiting;
        (self.expected, self.until) = (0, None);
        if expected <= FEW {
            return;
        }
        match self.skipped.checked_sub(1) {
            Some(left) => self.skipped = left,
            None => (self.expected, self.until) = (expected, Some(now + WAIT)),
        }
    }

    /// Somebody wants what waits now.
    pub(super) fn end(&mut self) {
        (self.expected, self.until) = (0, None);
    }

    /// Whether so many are all that are expected.
    pub(super) fn is_complete(&self, waiting: usize) -> bool {
        waiting >= self.expected
    }

    /// Whether so many are all that somebody is waiting for.
    pub(super) fn becomes_complete(&self, waiting: usize) -> bool {
        self.expected > 0 && self.is_complete(waiting)
    }

    /// Until when to wait for more than so many; `None` if nobody else is expected.
    pub(super) fn wait_until(&self, waiting: usize) -> Option<Instant> {
        self.until.filter(|_| !self.is_complete(waiting))
    }

    /// The group has all that it gets, and so many wait for it. If that is less than three quarters of those expected, they
    /// have other things to do, and the next groups do not wait for them.
    pub(super) fn ended(&mut self, waiting: usize) {
        if self.until.take().is_none() {
            return;
        }
        if waiting * 4 >= self.expected * 3 {
            self.next_skipped = 0;
        } else {
            self.next_skipped = (self.next_skipped * 2).clamp(1, SKIPPED_MAX);
            self.skipped = self.next_skipped;
        }
        self.expected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(gathering: &mut Gathering, told: usize, waiting: usize) -> bool {
        #[expect(clippy::disallowed_methods, reason = "the writer's clock is the machine's")]
        gathering.told(told, waiting, Instant::now());
        gathering.wait_until(waiting).is_some()
    }

    /// JR-2: the next group waits for those who were told of the last one, but not if they are few.
    #[test]
    fn a_group_waits_for_those_who_were_told() {
        let mut gathering = Gathering::default();
        assert!(gathering.is_complete(1), "nobody was told");
        assert!(!told(&mut gathering, 2, 1), "they are few");
        assert!(told(&mut gathering, 40, 24));
        assert!(gathering.wait_until(63).is_some() && gathering.wait_until(64).is_none());
        gathering.end();
        assert!(gathering.wait_until(1).is_none(), "somebody cannot wait");
    }

    /// JR-2: while those who were told do not come back, fewer and fewer groups wait for them.
    #[test]
    fn it_does_not_wait_for_those_who_do_not_come() {
        let mut gathering = Gathering::default();
        let mut waited = Vec::new();
        for group in 0..200 {
            if told(&mut gathering, 8, 0) {
                waited.push(group);
            }
            gathering.ended(5);
        }
        assert_eq!(waited, [0, 2, 5, 10, 19, 36, 69, 134, 199]);
        while !told(&mut gathering, 8, 0) {}
        gathering.ended(6);
        assert!(told(&mut gathering, 8, 0), "most of them came");
    }
}
