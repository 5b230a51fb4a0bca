//! Counts known keys against their bounds, without a lock (ID-8).

use super::KeyBounds;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of known keys.
#[derive(Debug, Default)]
pub(super) struct KeyCapacity {
    /// Flights and kept results.
    live: AtomicUsize,
    /// Tombstones and entries that will leave one. The flight of a mutating call reserves the place of its tombstone
    /// from the start, so that no call runs that could not be recorded later.
    lasting: AtomicUsize,
}

/// The places taken for a new flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakeResult {
    /// All that it needs.
    Both,
    /// None: there is no place for its tombstone, and none can be freed.
    NoLasting,
    /// None: there is no place for the flight itself.
    NoLive,
}

impl KeyCapacity {
    /// Takes a place for a flight and, if it is mutating, one for its tombstone.
    pub(super) fn take(&self, mutating: bool, bounds: &KeyBounds) -> TakeResult {
        if mutating && !self.take_lasting(bounds) {
            return TakeResult::NoLasting;
        }
        if take(&self.live, bounds.live_max) {
            return TakeResult::Both;
        }
        if mutating {
            self.release_lasting();
        }
        TakeResult::NoLive
    }

    /// Takes a place for a tombstone. Returns `false` if there is none left.
    pub(super) fn take_lasting(&self, bounds: &KeyBounds) -> bool {
        take(&self.lasting, bounds.tombstones_max)
    }

    /// Gives back all places of a flight.
    pub(super) fn release(&self, is_lasting: bool) {
        self.release_live();
        if is_lasting {
            self.release_lasting();
        }
    }

    /// Gives back the place of a flight or a kept result.
    pub(super) fn release_live(&self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives back the place of a tombstone.
    pub(super) fn release_lasting(&self) {
        self.lasting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes the places of a key that is known, even if there are none left.
    pub(super) fn add_known(&self, is_lasting: bool, is_live: bool) {
        self.live.fetch_add(usize::from(is_live), Ordering::Relaxed);
        self.lasting.fetch_add(usize::from(is_lasting), Ordering::Relaxed);
    }

    /// Gives back the places of a key that is known.
    pub(super) fn release_known(&self, is_lasting: bool, is_live: bool) {
        self.live.fetch_sub(usize::from(is_live), Ordering::Relaxed);
        self.lasting.fetch_sub(usize::from(is_lasting), Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn taken(&self) -> (usize, usize) {
        (self.live.load(Ordering::Relaxed), self.lasting.load(Ordering::Relaxed))
    }
}

/// Relaxed is enough because the counts guard no memory: each entry is under its shard's lock.
fn take(count: &AtomicUsize, max: usize) -> bool {
    let more = |taken| (taken < max).then_some(taken + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}
