//! The lanes that need one unit or one lease, in the order in which they are served.
//!
//! ```text
//!   resumes   12, 15                                         oldest first, before all calls
//!   ring      session 7 (credit 1) ─► session 9 (credit 4)   deficit round robin
//!               depth 2: 31                                  deeper first, then the oldest head
//!               depth 0: 18, 24
//! ```
//!
//! A session that has used up its credit goes to the back of the ring with a new credit, and so does a session that
//! starts to wait. A session that has credit but no call that can start is passed over and keeps its place. Turns are
//! numbered across all queues, so that two sessions can be compared where they share several resources (`order.rs`).

use super::lanes::{LaneKey, Who};
use foldhash::{HashMap, HashMapExt};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The place of a lane within its session: deeper first, then the oldest head.
type Place = (Reverse<u8>, u64, u32);

/// The share of a root session in a ring.
#[derive(Debug, Clone)]
struct Share {
    turn: u64,
    credit: u8,
    lanes: BTreeSet<Place>,
}

/// All lanes that need one unit or one lease.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    resumes: BTreeSet<(u64, u32)>,
    /// Root sessions by turn.
    ring: BTreeMap<u64, u64>,
    shares: HashMap<u64, Share>,
}

impl Queue {
    fn new() -> Self {
        Self { resumes: BTreeSet::new(), ring: BTreeMap::new(), shares: HashMap::new() }
    }

    /// Updates the place of a lane whose head has changed.
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
        // Insert before removing, so that a set of one keeps its memory.
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

    /// Charges one grant to a session's credit, if it still waits here. `next` is its new turn when its credit is
    /// used up.
    pub(super) fn charge(&mut self, root: u64, next: Turn) {
        let Some(share) = self.shares.get_mut(&root).filter(|_| !faulty!(FairnessOff)) else { return };
        share.credit -= 1;
        if share.credit == 0 && self.ring.len() == 1 {
            share.credit = next.weight; // the only session here: it is its turn again
        } else if share.credit == 0 {
            self.ring.remove(&share.turn);
            (share.turn, share.credit) = (next.number, next.weight);
            self.ring.insert(share.turn, root);
        }
    }

    /// Handlers that wait to resume, oldest first: the number of the head, and the lane.
    pub(super) fn resumes(&self) -> impl Iterator<Item = (u64, u32)> {
        self.resumes.iter().copied()
    }

    /// The turn of a session that waits here.
    pub(super) fn turn_of(&self, root: u64) -> Option<u64> {
        self.shares.get(&root).map(|share| share.turn)
    }

    /// The lanes of the sessions whose turn is before `turn`, in order of service.
    pub(super) fn lanes_before(&self, turn: u64) -> impl Iterator<Item = u32> {
        self.ring.range(..turn).flat_map(|(_, root)| self.lanes_of(*root))
    }

    /// The lanes of calls, in order of service.
    pub(super) fn lanes(&self) -> impl Iterator<Item = u32> {
        self.ring.values().flat_map(|root| self.lanes_of(*root))
    }

    /// The lanes of one session, in order of service.
    pub(super) fn lanes_of(&self, root: u64) -> impl Iterator<Item = u32> {
        let lanes = self.shares.get(&root).into_iter().flat_map(|share| &share.lanes);
        lanes.map(|(_, _, lane)| *lane)
    }

    /// The sessions of the ring in order, with their credits.
    #[cfg(test)]
    pub(super) fn ring(&self) -> Vec<(u64, u8)> {
        self.ring.values().map(|root| (*root, self.shares[root].credit)).collect()
    }
}

/// The number of a lane's head before and after a change.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change {
    pub(super) before: Option<u64>,
    pub(super) now: Option<u64>,
    /// The turn that its session gets if it has none here yet.
    pub(super) anew: Turn,
}

/// A turn at the back of every ring, worth as many grants as the weight says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    pub(super) number: u64,
    pub(super) weight: u8,
}
