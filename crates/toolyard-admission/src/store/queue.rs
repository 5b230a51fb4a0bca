//! The lanes that need one unit or one lease, in the order in which they are served.
//!
//! ```text
//!   resumes   12, 15                                         oldest first, before all calls
//!   sessions  session 7 (credit 1) ─► session 9 (credit 4)   deficit round robin
//!   ring of {read}            session 7: depth 2: 31; depth 0: 18, 24     deeper first, then the oldest head
//!   ring of {read, search}    session 7: depth 0: 20
//!                             session 9: depth 0: 22
//!   asleep    40, 41                                         lanes that lack this and are not listed elsewhere
//! ```
//!
//! A session that has used up its credit goes to the back of the ring with a new credit, and so does a session that
//! starts to wait. A session that has credit but no call that can start is passed over and keeps its place. Turns are
//! numbered across all queues, so that two sessions can be compared where they share several resources (`order.rs`).
//!
//! Lanes are listed by *group*: what they need of the resources that reach at least as far as this one. A group is
//! passed over as a whole while one of those is missing. What reaches less far is found missing lane by lane, and
//! then the lane *sleeps* there (`sleep.rs`).

use super::group::Group;
use super::key::{LaneKey, Who};
use crate::need::Need;
use foldhash::{HashMap, HashMapExt};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

/// The place of a lane within its session: deeper first, then the oldest head.
pub(crate) type Place = (Reverse<u8>, u64, u32);

/// The share of a root session in a ring.
#[derive(Debug, Clone)]
struct Share {
    turn: u64,
    credit: u8,
    /// How many of its lanes need this, listed or not.
    lanes: usize,
    listed: BTreeMap<Group, BTreeSet<Place>>,
}

/// All lanes that need one unit or one lease.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    /// How many lanes need this, listed or not.
    lanes: usize,
    resumes: BTreeMap<Need, BTreeSet<(u64, u32)>>,
    /// By group, the root sessions that have a lane listed in it, by turn.
    rings: BTreeMap<Group, BTreeMap<u64, u64>>,
    shares: HashMap<u64, Share>,
    /// The lanes that wait for this and are not listed at what reaches further.
    pub(crate) asleep: BTreeSet<u32>,
}

/// A lane about to be placed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listing<'a> {
    pub(crate) lane: u32,
    pub(crate) key: &'a LaneKey,
    pub(crate) group: &'a Group,
    /// Whether the lane is listed here: it does not sleep at something that reaches less far.
    pub(crate) is_listed: bool,
}

impl Queue {
    fn new() -> Self {
        Self {
            lanes: 0,
            resumes: BTreeMap::new(),
            rings: BTreeMap::new(),
            shares: HashMap::new(),
            asleep: BTreeSet::new(),
        }
    }

    /// Updates the place of a lane whose head has changed.
    pub(crate) fn place(queue: &mut Option<Box<Self>>, listing: Listing<'_>, change: Change) {
        let all = queue.get_or_insert_with(|| Box::new(Self::new()));
        if change.before.is_none() {
            all.join(listing.key, change.anew);
        }
        if listing.is_listed {
            all.list(listing, change.before, change.now);
        }
        if change.now.is_none() {
            all.leave(listing.lane, listing.key);
            if all.lanes == 0 {
                *queue = None;
            }
        }
    }

    fn join(&mut self, key: &LaneKey, anew: Turn) {
        self.lanes += 1;
        if let Who::Call { root, .. } = key.who {
            let Turn { number: turn, weight: credit } = anew;
            let share = Share { turn, credit, lanes: 0, listed: BTreeMap::new() };
            self.shares.entry(root).or_insert(share).lanes += 1;
        }
    }

    fn leave(&mut self, lane: u32, key: &LaneKey) {
        self.lanes -= 1;
        self.asleep.remove(&lane);
        if let Who::Call { root, .. } = key.who
            && let Some(share) = self.shares.get_mut(&root)
        {
            share.lanes -= 1;
            if share.lanes == 0 {
                self.shares.remove(&root);
            }
        }
    }

    /// Lists a lane under the number of its present head, or takes it off the list.
    pub(crate) fn list(&mut self, listing: Listing<'_>, before: Option<u64>, now: Option<u64>) {
        let Listing { lane, key, group, .. } = listing;
        match key.who {
            Who::Resume { .. } => {
                let listed = self.resumes.entry(group.need).or_default();
                listed.extend(now.map(|now| (now, lane)));
                if let Some(before) = before {
                    listed.remove(&(before, lane));
                }
                if listed.is_empty() {
                    self.resumes.remove(&group.need);
                }
            }
            Who::Call { root, depth, .. } => {
                let place = |number| (Reverse(depth), number, lane);
                self.list_call(root, group, before.map(place), now.map(place));
            }
        }
    }

    fn list_call(&mut self, root: u64, group: &Group, before: Option<Place>, now: Option<Place>) {
        let Self { rings, shares, .. } = self;
        let share = shares.get_mut(&root).expect("a session that waits here has a share");
        let listed = share.listed.entry(*group).or_insert_with(|| {
            rings.entry(*group).or_default().insert(share.turn, root);
            BTreeSet::new()
        });
        // Insert before removing, so that a set of one keeps its memory.
        listed.extend(now);
        if let Some(before) = before {
            let was_listed = listed.remove(&before);
            debug_assert!(was_listed, "a queue lists its lanes as they are");
        }
        if listed.is_empty() {
            share.listed.remove(group);
            let ring = rings.get_mut(group).expect("a group that is listed has a ring");
            ring.remove(&share.turn);
            if ring.is_empty() {
                rings.remove(group);
            }
        }
    }

    /// Charges one grant to a session's credit, if it still waits here. `next` is its new turn when its credit is
    /// used up.
    pub(crate) fn charge(&mut self, root: u64, next: Turn) {
        let is_only = self.shares.len() == 1;
        let Some(share) = self.shares.get_mut(&root) else { return };
        share.credit -= 1;
        if share.credit == 0 && is_only {
            share.credit = next.weight; // the only session here: it is its turn again
        } else if share.credit == 0 {
            for group in share.listed.keys() {
                let ring = self.rings.get_mut(group).expect("a group that is listed has a ring");
                ring.remove(&share.turn);
                ring.insert(next.number, root);
            }
            (share.turn, share.credit) = (next.number, next.weight);
        }
    }

    /// Whether handlers wait to resume.
    pub(crate) fn has_resumes(&self) -> bool {
        !self.resumes.is_empty()
    }

    /// Handlers that wait to resume, oldest first in each group: the number of the head, and the lane.
    pub(crate) fn resumes(&self) -> impl Iterator<Item = (Need, &BTreeSet<(u64, u32)>)> {
        self.resumes.iter().map(|(need, lanes)| (*need, lanes))
    }

    /// The turn of a session that waits here.
    pub(crate) fn turn_of(&self, root: u64) -> Option<u64> {
        self.shares.get(&root).map(|share| share.turn)
    }

    /// The groups of calls, each with its sessions by turn.
    pub(crate) fn rings(&self) -> impl Iterator<Item = (&Group, &BTreeMap<u64, u64>)> {
        self.rings.iter()
    }

    /// The lanes of one session that are listed in a group, in order of service.
    pub(crate) fn lanes_of(&self, root: u64, group: &Group) -> impl Iterator<Item = Place> {
        let listed = self.shares.get(&root).and_then(|share| share.listed.get(group));
        listed.into_iter().flatten().copied()
    }

    /// The sessions of the ring in order, with their credits.
    #[cfg(test)]
    pub(crate) fn ring(&self) -> Vec<(u64, u8)> {
        let mut ring: Vec<_> =
            self.shares.iter().map(|(root, share)| (share.turn, *root, share.credit)).collect();
        ring.sort_unstable();
        ring.into_iter().map(|(_, root, credit)| (root, credit)).collect()
    }
}

/// The number of a lane's head before and after a change.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Change {
    pub(crate) before: Option<u64>,
    pub(crate) now: Option<u64>,
    /// The turn that its session gets if it has none here yet.
    pub(crate) anew: Turn,
}

/// A turn at the back of every ring, worth as many grants as the weight says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    pub(crate) weight: u8,
}
