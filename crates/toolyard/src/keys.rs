//! The idempotency keys of one session tree (ID-1 to ID-8).
//!
//! ```text
//!   reserve ──► in flight ──► complete ──► kept 60 s ──┬─► tombstone    if not repeatable: for the tree's life
//!                   │                      (or less:   └─► gone         if repeatable
//!                   └─► forget: gone        no room)
//! ```
//!
//! Nothing here waits, and a clock is read only for a key that is known. The keys are in a sharded map, so that the
//! calls of thousands of agents do not contend for one lock. The order in which results were kept is behind a lock of
//! its own, taken when a call completes and when room runs out. That lock is taken before a shard's lock, never after.

mod capacity;
mod entry;
mod fingerprint;
mod of_call;
mod retain;
mod retention;

#[cfg(test)]
mod tests;

pub(crate) use entry::{Kept, Name};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use of_call::{KeyOf, RetainedResult, already_executed_error, mismatch_error};
pub(crate) use retain::{Ended, Retain};

use capacity::{KeyCapacity, TakeResult};
use dashmap::{DashMap, Entry as Place, OccupiedEntry};
use entry::{Entry, Found, KeyState};
use foldhash::quality::RandomState;
use parking_lot::Mutex;
use retention::{Evicted, Removed, Retention};
use std::{
    mem,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::Instant;

type Map<F, B> = DashMap<Name, Entry<F, B>, RandomState>;

/// The shards of a tree's map: many more than the cores that use keys of one tree at once.
const SHARDS: usize = 32;

/// How much one session tree keeps for its keys (ID-8), and for how long (ID-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    /// Flights and kept results. Beyond it the oldest result is evicted; if there is none, a new mutating call is
    /// `overloaded` and any other call runs without its key.
    pub(crate) live_max: usize,
    /// Bytes of kept results. Beyond it the oldest are evicted.
    pub(crate) bytes_max: usize,
    /// Tombstones, including those that flights and kept results of mutating calls may still leave. Beyond it new
    /// mutating calls are `overloaded`.
    pub(crate) tombstones_max: usize,
    /// How long after its completion a result is replayed.
    pub(crate) keep: Duration,
}

impl Default for KeyBounds {
    fn default() -> Self {
        Self {
            live_max: 10_000,
            bytes_max: 64 * 1024 * 1024,
            tombstones_max: 100_000,
            keep: Duration::from_secs(60),
        }
    }
}

/// What is known of a key before the call's run starts (V1: replay of a finished key). `R` is a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peek<R> {
    /// Nothing is known, or nothing any more.
    Unknown,
    /// A call with this key is in flight. Whether to join it is decided when the run starts, not now (ID-3).
    InFlight,
    /// Its result, available at once.
    Replay(R),
    /// It has run, and its result is no longer kept: `already_executed`.
    AlreadyExecuted,
    /// The key is known with other arguments or another version: `key_mismatch`.
    Mismatch,
}

/// What a call must do when its run starts (ID-3). `F` is the handle of a flight, `R` a kept result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reserved<F, R> {
    /// Run. Exactly one of [`Keys::complete`] and [`Keys::forget`] must follow.
    Lead(F),
    /// A call with this key is in flight: share its result, or answer `key_in_progress` (ID-3, ID-3a).
    Join(F),
    /// Use this result at once.
    Replay(R),
    /// It has run, and its result is no longer kept: `already_executed`.
    AlreadyExecuted,
    /// The key is known with other arguments or another version: `key_mismatch`.
    Mismatch,
    /// It is a mutating call and there is no room for its key (ID-8).
    Overloaded,
    /// There is no room for its key, but running it twice does no harm: run it without the key. Nothing must follow.
    NotRetained,
}

/// How the leading call ended, as far as its key is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finished<B> {
    /// The result is replayed for a while (V4, column 5).
    Keep {
        /// The result.
        body: B,
        /// The size of the result in bytes.
        bytes: usize,
        /// Whether running it again does no harm. Then it leaves no tombstone when it expires. The same holds for
        /// every call that was not reserved as mutating.
        idempotent: bool,
    },
    /// The next call with the key runs.
    Forget,
}

/// The keys of one session tree, for flight handles `F` and kept results `B`.
///
/// Handles are cloned under a lock, so cloning one should be cheap. A tree that uses no key allocates no map.
#[derive(Debug)]
pub(crate) struct Keys<F, B> {
    bounds: KeyBounds,
    map: OnceLock<Map<F, B>>,
    capacity: KeyCapacity,
    retention: Mutex<Retention>,
}

impl<F: Clone, B> Keys<F, B> {
    pub(crate) fn new(bounds: KeyBounds) -> Self {
        Self { bounds, map: OnceLock::new(), capacity: KeyCapacity::default(), retention: Mutex::default() }
    }

    /// Returns what is known of this key, without changing anything. Reads the clock only if something is known.
    pub(crate) fn peek(
        &self,
        name: &Name,
        fingerprint: Fingerprint,
        now: impl FnOnce() -> Instant,
    ) -> Peek<Arc<Kept<B>>> {
        let Some(entry) = self.map.get().and_then(|map| map.get(name)) else {
            return Peek::Unknown;
        };
        match entry.find(fingerprint, now()) {
            Found::Gone => Peek::Unknown,
            Found::Mismatch => Peek::Mismatch,
            Found::InFlight(_) => Peek::InFlight,
            Found::Replay(kept) => Peek::Replay(kept.clone()),
            Found::AlreadyExecuted => Peek::AlreadyExecuted,
        }
    }

    /// Makes this call the leader for its key, or says what to do instead. Of all calls that arrive, one leads.
    ///
    /// `mutating` says whether running the call twice may do harm, so that a tombstone must record that it ran.
    /// `make` is called under a lock if the call leads: it must not use these keys.
    pub(crate) fn reserve(
        &self,
        name: &Name,
        fingerprint: Fingerprint,
        now: Instant,
        mutating: bool,
        make: impl FnOnce() -> F,
    ) -> Reserved<F, Arc<Kept<B>>> {
        loop {
            match self.map().entry(name.clone()) {
                Place::Occupied(place) => match place.get().find(fingerprint, now) {
                    Found::Gone => return self.lead_anew(place, fingerprint, mutating, make),
                    Found::Mismatch => return Reserved::Mismatch,
                    Found::InFlight(flight) => return Reserved::Join(flight.clone()),
                    Found::Replay(kept) => return Reserved::Replay(kept.clone()),
                    Found::AlreadyExecuted => return Reserved::AlreadyExecuted,
                },
                Place::Vacant(place) => match self.capacity.take(mutating, &self.bounds) {
                    TakeResult::Both => {
                        let flight = make();
                        place.insert(Entry::in_flight(fingerprint, mutating, flight.clone()));
                        return Reserved::Lead(flight);
                    }
                    TakeResult::NoLasting => return Reserved::Overloaded,
                    TakeResult::NoLive => {}
                },
            }
            // The shard is unlocked again, so the retention lock may be taken.
            if !self.make_room(now) {
                return if mutating { Reserved::Overloaded } else { Reserved::NotRetained };
            }
        }
    }

    /// Leads under a key whose kept result has expired, and takes over its place.
    fn lead_anew(
        &self,
        mut place: OccupiedEntry<'_, Name, Entry<F, B>>,
        fingerprint: Fingerprint,
        mutating: bool,
        make: impl FnOnce() -> F,
    ) -> Reserved<F, Arc<Kept<B>>> {
        if mutating && !self.capacity.take_lasting(&self.bounds) {
            return Reserved::Overloaded;
        }
        let flight = make();
        let before = place.insert(Entry::in_flight(fingerprint, mutating, flight.clone()));
        drop(place);
        drop(before);
        Reserved::Lead(flight)
    }

    /// Evicts the expired results, else the oldest one. Returns `false` if there was none.
    fn make_room(&self, now: Instant) -> bool {
        let mut removed = Removed::new();
        let mut retention = self.retention.lock();
        let mut has_freed = retention.sweep(now, self.map(), &self.capacity, &mut removed);
        while !has_freed {
            match retention.evict(self.map(), &self.capacity, &mut removed) {
                Evicted::Freed => has_freed = true,
                Evicted::Stale => {}
                Evicted::Empty => break,
            }
        }
        drop(retention);
        has_freed
    }

    /// Ends the flight of this key: the call that led has ended.
    pub(crate) fn complete(&self, name: &Name, finished: Finished<B>, now: Instant) {
        let mut removed = Removed::new();
        let mut retention = self.retention.lock();
        retention.sweep(now, self.map(), &self.capacity, &mut removed);
        let landed = self.settle_flight(name, finished, now, &mut retention);
        while retention.bytes() > self.bounds.bytes_max {
            retention.evict(self.map(), &self.capacity, &mut removed);
        }
        drop(retention);
        drop(landed);
    }

    /// Ends the flight of this key as if it had never been: the next call runs, because this one never started
    /// (ID-5).
    pub(crate) fn forget(&self, name: &Name) {
        let _forgotten = self.remove_flight(name);
    }

    /// Removes the flight of this key and leaves nothing. Returns it, to be dropped outside the lock.
    fn remove_flight(&self, name: &Name) -> Option<KeyState<F, B>> {
        let is_flight = |_: &Name, entry: &Entry<F, B>| matches!(entry.state, KeyState::InFlight(_));
        let (_, entry) = self.map().remove_if(name, is_flight)?;
        self.capacity.release(entry.is_lasting);
        Some(entry.state)
    }

    /// Turns a flight into what is left of it. Returns the replaced state, to be dropped outside the lock.
    fn settle_flight(
        &self,
        name: &Name,
        finished: Finished<B>,
        now: Instant,
        retention: &mut Retention,
    ) -> Option<KeyState<F, B>> {
        let Finished::Keep { body, bytes, idempotent } = finished else { return self.remove_flight(name) };
        let mut entry = self.map().get_mut(name)?;
        if !matches!(entry.state, KeyState::InFlight(_)) {
            return None;
        }
        if entry.is_lasting && idempotent {
            entry.is_lasting = false;
            self.capacity.release_lasting();
        }
        let state = if bytes <= self.bounds.bytes_max {
            let until = now + self.bounds.keep;
            let number = retention.note(name.clone(), until, bytes);
            KeyState::Retained(Arc::new(Kept { body, until, number }))
        } else if entry.is_lasting {
            self.capacity.release_live();
            KeyState::Tombstone
        } else {
            drop(entry);
            return self.remove_flight(name);
        };
        Some(mem::replace(&mut entry.state, state))
    }

    /// Whether something is known of a key.
    pub(crate) fn knows(&self, name: &Name) -> bool {
        self.map().contains_key(name)
    }

    /// Makes a key known that an earlier life of the engine has used (ID-9, JR-10): with its result, which is replayed
    /// for as long as one that has just ended, or as one that has run, if `is_lasting`. What is in flight stays so. There
    /// is always room: what was done must be known.
    pub(crate) fn restore(
        &self,
        name: Name,
        fingerprint: Fingerprint,
        is_lasting: bool,
        kept: Option<(B, usize)>,
        now: Instant,
    ) {
        let mut removed = Removed::new();
        let mut retention = self.retention.lock();
        let before = match self.map().entry(name.clone()) {
            Place::Occupied(place) if matches!(place.get().state, KeyState::InFlight(_)) => return,
            Place::Occupied(place) => Some(place.remove()),
            Place::Vacant(_) => None,
        };
        if let Some(before) = before {
            self.capacity.release_known(before.is_lasting, matches!(before.state, KeyState::Retained(_)));
            removed.push(before.state);
        }
        let state = match kept {
            Some((body, bytes)) => {
                let until = now + self.bounds.keep;
                let number = retention.note(name.clone(), until, bytes);
                KeyState::Retained(Arc::new(Kept { body, until, number }))
            }
            None if is_lasting => KeyState::Tombstone,
            None => return,
        };
        self.capacity.add_known(is_lasting, matches!(state, KeyState::Retained(_)));
        self.map().insert(name, Entry { fingerprint, is_lasting, state });
        while retention.bytes() > self.bounds.bytes_max {
            retention.evict(self.map(), &self.capacity, &mut removed);
        }
        drop(retention);
    }

    /// Forgets a key that was [restored](Self::restore) and is to run again, unless it is in flight.
    pub(crate) fn release(&self, name: &Name) {
        let is_known = |_: &Name, entry: &Entry<F, B>| !matches!(entry.state, KeyState::InFlight(_));
        // Dropped outside of the lock.
        if let Some((_, entry)) = self.map().remove_if(name, is_known) {
            self.capacity.release_known(entry.is_lasting, matches!(entry.state, KeyState::Retained(_)));
        }
    }

    fn map(&self) -> &Map<F, B> {
        self.map.get_or_init(|| DashMap::with_hasher_and_shard_amount(RandomState::default(), SHARDS))
    }
}
