//! How long results are kept, and which are evicted first when room runs out (ID-6, ID-8).

use super::{
    Map,
    capacity::KeyCapacity,
    entry::{KeyState, Name},
};
use dashmap::Entry as Place;
use std::collections::VecDeque;
use tokio::time::Instant;

/// One kept result. The result may be gone already, if it expired and its key was reused.
#[derive(Debug)]
struct Record {
    name: Name,
    number: u64,
    until: Instant,
    bytes: usize,
}

/// The kept results in order of completion.
#[derive(Debug, Default)]
pub(super) struct Retention {
    order: VecDeque<Record>,
    bytes: usize,
    next: u64,
}

/// States removed from the map, to be dropped when no lock is held: their drop may take long and run an embedder's
/// code.
pub(super) type Removed<F, B> = Vec<KeyState<F, B>>;

impl Retention {
    /// Records a result. Returns the number that its entry must have.
    pub(super) fn note(&mut self, name: Name, until: Instant, bytes: usize) -> u64 {
        self.next += 1;
        self.bytes += bytes;
        self.order.push_back(Record { name, number: self.next, until, bytes });
        self.next
    }

    /// The bytes of all recorded results.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Evicts all expired results. Returns whether that freed a place.
    pub(super) fn sweep<F, B>(
        &mut self,
        now: Instant,
        map: &Map<F, B>,
        capacity: &KeyCapacity,
        removed: &mut Removed<F, B>,
    ) -> bool {
        let mut has_freed = false;
        while self.order.front().is_some_and(|record| record.until <= now) {
            has_freed |= self.evict(map, capacity, removed) == Evicted::Freed;
        }
        has_freed
    }

    /// Evicts the oldest result, leaving a tombstone if it is lasting.
    pub(super) fn evict<F, B>(
        &mut self,
        map: &Map<F, B>,
        capacity: &KeyCapacity,
        removed: &mut Removed<F, B>,
    ) -> Evicted {
        let Some(record) = self.order.pop_front() else { return Evicted::Empty };
        self.bytes -= record.bytes;
        let Place::Occupied(mut place) = map.entry(record.name) else { return Evicted::Stale };
        if !place.get().is_body(record.number) {
            return Evicted::Stale;
        }
        removed.push(match place.get().is_lasting {
            true => std::mem::replace(&mut place.get_mut().state, KeyState::Tombstone),
            false => place.remove().state,
        });
        capacity.release_live();
        Evicted::Freed
    }
}

/// The effect of evicting the oldest record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evicted {
    /// A place was freed.
    Freed,
    /// The result was gone already.
    Stale,
    /// There was no record.
    Empty,
}
