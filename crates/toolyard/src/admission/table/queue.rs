//! The lanes that need one unit or one lease, in the order in which they are to be served.
//!
//! ```text
//!   resumes   12, 15                                         oldest first, before everybody
//!   ring      session 7 (credit 1) ─► session 9 (credit 4)   deficit round robin
//!               depth 2: 31                                  deeper first, then the oldest head
//!               depth 0: 18, 24
//! ```
//!
//! A session that has used its credit goes to the back of the ring with a new one, and so does one that comes
//! anew. One that has credit and nobody who can go is passed over and keeps its place. Turns are numbered over all
//! queues, so that those of two sessions can be compared where they meet at several things (`order.rs`).

use super::lanes::{LaneKey, Who};
use foldhash::{HashMap, HashMapExt};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// A lane at its place in a session: deeper first, then the oldest head.
type Place = (Reverse<u8>, u64, u32);

/// A root session in a ring.
#[derive(Debug, Clone)]
struct Share {
    turn: u64,
    credit: u8,
    lanes: BTreeSet<Place>,
}

/// Everybody who waits and needs one thing.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    resumes: BTreeSet<(u64, u32)>,
    /// Root sessions by their turns.
    ring: BTreeMap<u64, u64>,
    shares: HashMap<u64, Share>,
}

impl Queue {
    fn new() -> Self {
        Self { resumes: BTreeSet::new(), ring: BTreeMap::new(), shares: HashMap::new() }
    }

    /// Notes that the head of a lane has changed.
    pub(super) fn place(queue: &mut Option<Box<Self>>, lane: u32, key: &LaneKey, change: Change) {
        let all = queue.get_or_insert_with(|| Box::new(Self::new()));
        match key.who {
            Who::Resume { .. } => {
                if let Some(before) = change.before {
                    all.resumes.remove(&(before, lane));
                }
                all.resumes.extend(change.now.map(|now| (now, lane)));
            }
            Who::Call { root, depth, .. } => all.place_call(root, (Reverse(depth), lane), change),
        }
        if all.resumes.is_empty() && all.ring.is_empty() {
            *queue = None;
        }
    }

    fn place_call(&mut self, root: u64, (depth, lane): (Reverse<u8>, u32), change: Change) {
        let Self { ring, shares, .. } = self;
        let Turn { number: turn, weight: credit } = change.anew;
        let share = shares.entry(root).or_insert_with(|| {
            ring.insert(turn, root);
            Share { turn, credit, lanes: BTreeSet::new() }
        });
        // In this order a list of one keeps its memory.
        share.lanes.extend(change.now.map(|now| (depth, now, lane)));
        if let Some(before) = change.before {
            let was_listed = share.lanes.remove(&(depth, before, lane));
            debug_assert!(was_listed, "a queue lists its lanes as they are");
        }
        if share.lanes.is_empty() {
            ring.remove(&share.turn);
            shares.remove(&root);
        }
    }

    /// Counts one grant against a session's credit, if it still waits here. `next`: what it gets when it has none left.
    pub(super) fn charge(&mut self, root: u64, next: Turn) {
        let Some(share) = self.shares.get_mut(&root).filter(|_| !faulty!(FairnessOff)) else { return };
        share.credit -= 1;
        if share.credit == 0 && self.ring.len() == 1 {
            share.credit = next.weight; // it is its turn again
        } else if share.credit == 0 {
            self.ring.remove(&share.turn);
            (share.turn, share.credit) = (next.number, next.weight);
            self.ring.insert(share.turn, root);
        }
    }

    /// Handlers that wait to resume: number of the head and lane, oldest first.
    pub(super) fn resumes(&self) -> impl Iterator<Item = (u64, u32)> {
        self.resumes.iter().copied()
    }

    /// The turn of a session that waits here.
    pub(super) fn turn_of(&self, root: u64) -> Option<u64> {
        self.shares.get(&root).map(|share| share.turn)
    }

    /// The lanes of the sessions whose turn is before that one, in the order of service.
    pub(super) fn lanes_before(&self, turn: u64) -> impl Iterator<Item = u32> {
        self.ring.range(..turn).flat_map(|(_, root)| self.lanes_of(*root))
    }

    /// The lanes of calls, in the order of service.
    pub(super) fn lanes(&self) -> impl Iterator<Item = u32> {
        self.ring.values().flat_map(|root| self.lanes_of(*root))
    }

    /// The lanes of one session, in the order of service.
    pub(super) fn lanes_of(&self, root: u64) -> impl Iterator<Item = u32> {
        let lanes = self.shares.get(&root).into_iter().flat_map(|share| &share.lanes);
        lanes.map(|(_, _, lane)| *lane)
    }

    /// The ring as it stands: sessions and their credits.
    #[cfg(test)]
    pub(super) fn ring(&self) -> Vec<(u64, u8)> {
        self.ring.values().map(|root| (*root, self.shares[root].credit)).collect()
    }
}

/// The head of a lane before and after a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) before: Option<u64>,
    pub(super) now: Option<u64>,
    /// The turn of its session, if it has none yet.
    pub(super) anew: Turn,
}

/// A place at the back of every ring: as many grants as the weight says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) weight: u8,
}
