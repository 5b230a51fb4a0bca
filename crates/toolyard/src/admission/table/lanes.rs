//! The lanes: who waits, in which order.

use super::Need;
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;

/// What the calls of a lane have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    pub(super) session: u64,
    pub(super) need: Need,
}

/// When a lane is to be served: the one served longest ago first, then the one whose head came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    served_at: u64,
    head: u64,
    pub(super) lane: u32,
}

/// One session's calls with the same need.
#[derive(Debug)]
pub(super) struct Lane<W> {
    pub(super) key: LaneKey,
    /// Waiters in order of their numbers; one that left is `None` until it reaches an end.
    waiters: VecDeque<(u64, Option<W>)>,
    /// When this lane was served last or opened, in grants of the whole table.
    served_at: u64,
}

impl<W> Lane<W> {
    pub(super) fn push(&mut self, number: u64, waiter: W) {
        self.waiters.push_back((number, Some(waiter)));
    }

    /// Takes the head out, at this grant of the table.
    pub(super) fn serve(&mut self, served_at: u64) -> W {
        let (_, head) = self.waiters.pop_front().expect("an open lane has a head");
        self.served_at = served_at;
        self.trim();
        head.expect("a head has not left")
    }

    /// Takes a waiter out, wherever it stands; `None` when it is no longer there.
    pub(super) fn cancel(&mut self, number: u64) -> Option<W> {
        let at = self.waiters.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let waiter = self.waiters[at].1.take()?;
        self.trim();
        Some(waiter)
    }

    /// Drops waiters that left from both ends, so that head and emptiness are what they seem.
    fn trim(&mut self) {
        while self.waiters.front().is_some_and(|(_, waiter)| waiter.is_none()) {
            self.waiters.pop_front();
        }
        while self.waiters.back().is_some_and(|(_, waiter)| waiter.is_none()) {
            self.waiters.pop_back();
        }
    }

    /// Its waiters up to that number.
    pub(super) fn until(&self, number: u64) -> impl Iterator<Item = &W> {
        let first = self.waiters.iter().take_while(move |(at, _)| *at <= number);
        first.filter_map(|(_, waiter)| waiter.as_ref())
    }

    /// When it is to be served; `None` when nobody waits in it.
    pub(super) fn turn(&self, lane: u32) -> Option<Turn> {
        let (head, _) = self.waiters.front()?;
        Some(Turn { served_at: self.served_at, head: *head, lane })
    }
}

/// The open lanes.
#[derive(Debug)]
pub(super) struct Lanes<W> {
    slots: Vec<Option<Lane<W>>>,
    free: Vec<u32>,
    by_key: HashMap<LaneKey, u32>,
}

impl<W> Lanes<W> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), by_key: HashMap::new() }
    }

    pub(super) fn find(&self, key: LaneKey) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    pub(super) fn get(&mut self, at: u32) -> Option<&mut Lane<W>> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane<W>> {
        self.slots.iter().flatten()
    }

    pub(super) fn need(&self, at: u32) -> Option<Need> {
        Some(self.slots.get(at as usize)?.as_ref()?.key.need)
    }

    /// Opens a lane. It counts as served at the moment it opens: were it the one served longest ago, sessions
    /// with one call at a time would open a lane for each and go before all who wait.
    pub(super) fn open(&mut self, key: LaneKey, now: u64) -> u32 {
        let lane = Some(Lane { key, waiters: VecDeque::new(), served_at: now });
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = lane;
                at
            }
            None => {
                self.slots.push(lane);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 lanes are open")
            }
        };
        self.by_key.insert(key, at);
        at
    }

    pub(super) fn close(&mut self, at: u32) {
        if let Some(lane) = self.slots[at as usize].take() {
            self.by_key.remove(&lane.key);
            self.free.push(at);
        }
    }
}
