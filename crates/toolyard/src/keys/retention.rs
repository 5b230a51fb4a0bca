//! For how long results are kept, and which go first when there is no room (ID-6, ID-8).

use super::{
    Map,
    entry::{Name, State},
    room::Room,
};
use dashmap::Entry as Place;
use std::collections::VecDeque;
use tokio::time::Instant;

/// One kept result. It may be gone already: its time was over, and its key was used anew.
#[derive(Debug)]
struct Record {
    name: Name,
    number: u64,
    until: Instant,
    bytes: usize,
}

/// Kept results in the order of their completion.
#[derive(Debug, Default)]
pub(super) struct Retention {
    order: VecDeque<Record>,
    bytes: usize,
    next: u64,
}

/// What has left the map, to be dropped when no lock is held: its drop may be long, and is not ours.
pub(super) type Left<F, B> = Vec<State<F, B>>;

impl Retention {
    /// Notes a result; its number is what its entry has to have.
    pub(super) fn note(&mut self, name: Name, until: Instant, bytes: usize) -> u64 {
        self.next += 1;
        self.bytes += bytes;
        self.order.push_back(Record { name, number: self.next, until, bytes });
        self.next
    }

    /// Bytes of the results that are noted.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes out what has had its time.
    pub(super) fn sweep<F, B>(
        &mut self,
        now: Instant,
        map: &Map<F, B>,
        room: &Room,
        left: &mut Left<F, B>,
    ) -> bool {
        let mut has_freed = false;
        while self.order.front().is_some_and(|record| record.until <= now) {
            has_freed |= self.evict(map, room, left) == Evicted::Freed;
        }
        has_freed
    }

    /// Takes out the oldest result: it is gone, or a tombstone if it is lasting.
    pub(super) fn evict<F, B>(&mut self, map: &Map<F, B>, room: &Room, left: &mut Left<F, B>) -> Evicted {
        let Some(record) = self.order.pop_front() else { return Evicted::Empty };
        self.bytes -= record.bytes;
        let Place::Occupied(mut place) = map.entry(record.name) else { return Evicted::Stale };
        if !place.get().is_body(record.number) {
            return Evicted::Stale;
        }
        left.push(match place.get().is_lasting {
            true => std::mem::replace(&mut place.get_mut().state, State::Tombstone),
            false => place.remove().state,
        });
        room.give_live();
        Evicted::Freed
    }
}

/// What taking out the oldest came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evicted {
    /// There is room for one more.
    Freed,
    /// It was gone already.
    Stale,
    /// There was none.
    Empty,
}
