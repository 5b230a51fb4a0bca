//! What one session tree knows of its idempotency keys (ID-1 to ID-8).
//!
//! ```text
//!   reserve ──► in flight ──► complete ──► kept 60 s ──┬─► tombstone    may not be repeated: for the tree's life
//!                   │                      (or less:   └─► gone         may be
//!                   └─► forget: gone        no room)
//! ```
//!
//! No clock is read here and nobody is waited for. A map in shards has the keys, so that the calls of thousands of
//! agents do not meet in one lock; the order in which results were kept is in a lock of its own, taken when a call
//! completes and when there is no room. That lock is taken before a shard, never after.

mod entry;
mod fingerprint;
mod kept;
mod retention;
mod room;

#[cfg(test)]
mod tests;

pub(crate) use fingerprint::Fingerprint;
pub(crate) use kept::{Ended, Kept};

use dashmap::{DashMap, Entry as Place, OccupiedEntry};
use entry::{Body, Entry, Found, Name, State};
use foldhash::quality::RandomState;
use retention::{Evicted, Left, Retention};
use room::{Room, Taken};
use std::{
    mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

type Map<F, B> = DashMap<Name, Entry<F, B>, RandomState>;

/// Shards of a tree's map: many more than cores that look for keys of one tree at once.
const SHARDS: usize = 32;

/// What one session tree keeps of its keys at most (ID-8), and for how long (ID-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyBounds {
    /// Flights in the air and kept results. Over it the oldest result goes; where there is none, a new mutating call
    /// is `overloaded` and any other runs without its key.
    pub(crate) live_max: usize,
    /// Bytes of kept results. Over it the oldest go.
    pub(crate) bytes_max: usize,
    /// Tombstones, with those that flights in the air and kept results of mutating calls may come to. Over it new
    /// mutating calls are `overloaded`.
    pub(crate) tombstones_max: usize,
    /// For how long after its completion a result is replayed.
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

/// What is known of a key before its call's turn has come (V1: replay of a finished key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Peek<B> {
    /// Nothing, or nothing any more.
    Unknown,
    /// A call of this key runs or waits. Whether to join it is asked when the run begins, not now (ID-3).
    InFlight,
    /// The result, at once.
    Replay(B),
    /// It has run and its result is no longer kept: `already_executed`.
    AlreadyExecuted,
    /// Known with other arguments or another version: `key_mismatch`.
    Mismatch,
}

/// What a call has to do whose run begins (ID-3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reserved<F, B> {
    /// Run. Exactly one of [`Keys::complete`] and [`Keys::forget`] must follow.
    Lead(F),
    /// A call of this key is in the air: share its result, or answer `key_in_progress` (ID-3, ID-3a).
    Join(F),
    /// The result, at once.
    Replay(B),
    /// It has run and its result is no longer kept: `already_executed`.
    AlreadyExecuted,
    /// Known with other arguments or another version: `key_mismatch`.
    Mismatch,
    /// A mutating call, and no room for its key (ID-8).
    Overloaded,
    /// No room for its key, and to run it twice does no harm: run it as if it had none. Nothing follows.
    Unkept,
}

/// How the call that led ended, for its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finished<B> {
    /// Its result is replayed for a while (V4, column 5).
    Keep {
        /// The result.
        body: B,
        /// What it holds, in bytes.
        bytes: usize,
        /// Whether to run it again does no harm: then it is gone after its time and leaves no tombstone. So it is
        /// with every call that was not reserved as mutating.
        idempotent: bool,
    },
    /// Who comes next runs.
    Forget,
}

/// The keys of one session tree, over handles of flights `F` and kept results `B`.
///
/// Both are cloned under a lock: let them be cheap to clone. A tree that uses no key holds no map.
#[derive(Debug)]
pub(crate) struct Keys<F, B> {
    bounds: KeyBounds,
    map: OnceLock<Map<F, B>>,
    room: Room,
    retention: Mutex<Retention>,
}

impl<F: Clone, B: Clone> Keys<F, B> {
    pub(crate) fn new(bounds: KeyBounds) -> Self {
        Self { bounds, map: OnceLock::new(), room: Room::default(), retention: Mutex::default() }
    }

    /// What is known of this key. Changes nothing.
    pub(crate) fn peek(
        &self,
        tool: &Arc<str>,
        key: &Arc<str>,
        fingerprint: Fingerprint,
        now: Instant,
    ) -> Peek<B> {
        let Some(entry) = self.map.get().and_then(|map| map.get(&Name::new(tool, key))) else {
            return Peek::Unknown;
        };
        match entry.find(fingerprint, now) {
            Found::Gone => Peek::Unknown,
            Found::Mismatch => Peek::Mismatch,
            Found::InFlight(_) => Peek::InFlight,
            Found::Replay(body) => Peek::Replay(body.clone()),
            Found::AlreadyExecuted => Peek::AlreadyExecuted,
        }
    }

    /// Makes this call lead under its key, or says what to do instead: of all who come, one leads.
    ///
    /// `mutating`: whether to run the call twice may do harm, so that it must be known for good that it ran.
    /// `make` is called if it leads, under a lock: it must not come back here.
    pub(crate) fn reserve(
        &self,
        tool: &Arc<str>,
        key: &Arc<str>,
        fingerprint: Fingerprint,
        now: Instant,
        mutating: bool,
        make: impl FnOnce() -> F,
    ) -> Reserved<F, B> {
        let name = Name::new(tool, key);
        loop {
            match self.map().entry(name.clone()) {
                Place::Occupied(place) => match place.get().find(fingerprint, now) {
                    Found::Gone => return self.lead_anew(place, fingerprint, mutating, make),
                    Found::Mismatch => return Reserved::Mismatch,
                    Found::InFlight(flight) => return Reserved::Join(flight.clone()),
                    Found::Replay(body) => return Reserved::Replay(body.clone()),
                    Found::AlreadyExecuted => return Reserved::AlreadyExecuted,
                },
                Place::Vacant(place) => match self.room.take(mutating, &self.bounds) {
                    Taken::Both => {
                        let flight = make();
                        place.insert(Entry::in_flight(fingerprint, mutating, flight.clone()));
                        return Reserved::Lead(flight);
                    }
                    Taken::NoLasting => return Reserved::Overloaded,
                    Taken::NoLive => {}
                },
            }
            // Its shard is free again, so the other lock may be taken.
            if !self.make_room(now) {
                return if mutating { Reserved::Overloaded } else { Reserved::Unkept };
            }
        }
    }

    /// Leads under a key whose result has had its time; the place of that goes over.
    fn lead_anew(
        &self,
        mut place: OccupiedEntry<'_, Name, Entry<F, B>>,
        fingerprint: Fingerprint,
        mutating: bool,
        make: impl FnOnce() -> F,
    ) -> Reserved<F, B> {
        if mutating && !self.room.take_lasting(&self.bounds) {
            return Reserved::Overloaded;
        }
        let flight = make();
        let before = place.insert(Entry::in_flight(fingerprint, mutating, flight.clone()));
        drop(place);
        drop(before);
        Reserved::Lead(flight)
    }

    /// Takes out what has had its time, or else the oldest result. False: there is none.
    fn make_room(&self, now: Instant) -> bool {
        let mut left = Left::new();
        let mut retention = self.retention();
        let mut has_freed = retention.sweep(now, self.map(), &self.room, &mut left);
        while !has_freed {
            match retention.evict(self.map(), &self.room, &mut left) {
                Evicted::Freed => has_freed = true,
                Evicted::Stale => {}
                Evicted::Empty => break,
            }
        }
        drop(retention);
        has_freed
    }

    /// The call that led under this key has ended.
    pub(crate) fn complete(&self, tool: &Arc<str>, key: &Arc<str>, finished: Finished<B>, now: Instant) {
        let mut left = Left::new();
        let mut retention = self.retention();
        retention.sweep(now, self.map(), &self.room, &mut left);
        left.extend(self.land(Name::new(tool, key), finished, now, &mut retention));
        while retention.bytes() > self.bounds.bytes_max {
            retention.evict(self.map(), &self.room, &mut left);
        }
        drop(retention);
    }

    /// The call that led under this key never started: who comes next runs (ID-5).
    pub(crate) fn forget(&self, tool: &Arc<str>, key: &Arc<str>) {
        let is_flight = |_: &Name, entry: &Entry<F, B>| matches!(entry.state, State::InFlight(_));
        let Some((_, entry)) = self.map().remove_if(&Name::new(tool, key), is_flight) else { return };
        self.room.give(entry.is_lasting);
    }

    /// Turns a flight into what is left of it. Gives back its handle.
    fn land(
        &self,
        name: Name,
        finished: Finished<B>,
        now: Instant,
        retention: &mut Retention,
    ) -> Option<State<F, B>> {
        let Place::Occupied(mut place) = self.map().entry(name.clone()) else { return None };
        let entry = place.get_mut();
        if !matches!(entry.state, State::InFlight(_)) {
            return None;
        }
        let is_lasting = entry.is_lasting && !matches!(finished, Finished::Keep { idempotent: true, .. });
        if entry.is_lasting && !is_lasting {
            entry.is_lasting = false;
            self.room.give_lasting();
        }
        let state = match finished {
            Finished::Keep { body, bytes, .. } if bytes <= self.bounds.bytes_max => {
                let until = now + self.bounds.keep;
                let number = retention.note(name, until, bytes);
                State::Kept(Box::new(Body { body, until, number }))
            }
            Finished::Keep { .. } if is_lasting => {
                self.room.give_live();
                State::Tombstone
            }
            _ => {
                self.room.give(is_lasting);
                return Some(place.remove().state);
            }
        };
        Some(mem::replace(&mut entry.state, state))
    }

    fn map(&self) -> &Map<F, B> {
        self.map.get_or_init(|| DashMap::with_hasher_and_shard_amount(RandomState::default(), SHARDS))
    }

    fn retention(&self) -> MutexGuard<'_, Retention> {
        self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
