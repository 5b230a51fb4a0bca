//! How many keys there may still be (ID-8), counted without a lock.

use super::KeyBounds;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Keys that are known, against their bounds.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Flights in the air and kept results.
    live: AtomicUsize,
    /// Tombstones and what will leave one: a flight of a mutating call has the place of its tombstone from the
    /// start, so that no call runs of which nothing could be known later.
    lasting: AtomicUsize,
}

/// What a new flight was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// All it needs.
    Both,
    /// Nothing: there is no place for its tombstone, and none can be made.
    NoLasting,
    /// Nothing: there is no place for itself.
    NoLive,
}

impl Room {
    /// Takes the place of a flight and, if it is mutating, that of its tombstone.
    pub(super) fn take(&self, mutating: bool, bounds: &KeyBounds) -> Taken {
        if mutating && !self.take_lasting(bounds) {
            return Taken::NoLasting;
        }
        if take(&self.live, bounds.live_max) {
            return Taken::Both;
        }
        if mutating {
            self.give_lasting();
        }
        Taken::NoLive
    }

    /// Takes the place of a tombstone. False: there is none left.
    pub(super) fn take_lasting(&self, bounds: &KeyBounds) -> bool {
        take(&self.lasting, bounds.tombstones_max)
    }

    /// Gives back all that a flight has.
    pub(super) fn give(&self, is_lasting: bool) {
        self.give_live();
        if is_lasting {
            self.give_lasting();
        }
    }

    /// Gives back the place of a flight or a kept result.
    pub(super) fn give_live(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives back the place of a tombstone.
    pub(super) fn give_lasting(&self) {
        self.lasting.fetch_sub(1, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> (usize, usize) {
        (self.live.load(Ordering::Relaxed), self.lasting.load(Ordering::Relaxed))
    }
}

/// The counts guard no memory: what is counted is under the lock of its entry.
fn take(count: &AtomicUsize, most: usize) -> bool {
    let more = |taken| (taken < most).then_some(taken + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}
