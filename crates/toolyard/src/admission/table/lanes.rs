//! The lanes: who waits, first in, first out.

use super::{EntryId, Moment, Need};
use foldhash::{HashMap, HashMapExt};
use std::collections::VecDeque;

/// A place in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(super) lane: u32,
    pub(super) number: u64,
}

/// Who waits in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// Calls that have not started.
    Call {
        root: u64,
        depth: u8,
        /// Their nearest ancestor on the lease they need: while it is on top they may stand on it (CC-7).
        holder: Option<EntryId>,
        /// Whether they may not wait for the lease they need (CC-8).
        strict: bool,
    },
    /// Handlers that were parked. Those on a lease have a lane each.
    Resume { entry: Option<EntryId> },
}

/// What all who wait in a lane have in common: whether one can go, each can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LaneKey {
    pub(super) need: Need,
    pub(super) who: Who,
}

/// One who waits.
#[derive(Debug, Clone)]
pub(super) struct Waiting<W> {
    pub(super) number: u64,
    pub(super) since: Moment,
    /// The nearest ancestor on any lease.
    pub(super) lineage: Option<EntryId>,
    /// `None`: has left. Its place goes with the next that is tidied up.
    what: Option<W>,
}

impl<W> Waiting<W> {
    pub(super) fn new(number: u64, since: Moment, lineage: Option<EntryId>, what: W) -> Self {
        Self { number, since, lineage, what: Some(what) }
    }

    pub(super) fn into_what(self) -> W {
        self.what.expect("a head has not left")
    }
}

/// Those of one key.
#[derive(Debug, Clone)]
pub(super) struct Lane<W> {
    pub(super) key: LaneKey,
    /// In order of their numbers. The first and the last have not left.
    waiting: VecDeque<Waiting<W>>,
    gone: usize,
    /// The number under which it is listed; `None` before it is.
    listed: Option<u64>,
}

impl<W> Lane<W> {
    pub(super) fn head(&self) -> Option<&Waiting<W>> {
        self.waiting.front()
    }

    /// The number of the head, under which the lane is to be listed.
    pub(super) fn turn(&self) -> Option<u64> {
        self.head().map(|head| head.number)
    }

    /// It is to be listed under the number of its head from now on: the number before and this one.
    pub(super) fn list(&mut self) -> (Option<u64>, Option<u64>) {
        let now = self.turn();
        (std::mem::replace(&mut self.listed, now), now)
    }

    /// Whether it is listed and has somebody to be listed for.
    fn stays_listed(&self) -> bool {
        self.listed.is_some() && !self.waiting.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len() - self.gone
    }

    /// How many places it has, those of the ones that left included.
    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn push(&mut self, waiting: Waiting<W>) {
        self.waiting.push_back(waiting);
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<W>> {
        let head = self.waiting.pop_front()?;
        self.tidy();
        Some(head)
    }

    /// Takes all out, with their numbers.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (u64, W)> {
        self.gone = 0;
        let all = std::mem::take(&mut self.waiting).into_iter();
        all.filter_map(|waiting| Some((waiting.number, waiting.what?)))
    }

    /// Takes one out, wherever it stands; `None` when it is no longer there.
    pub(super) fn cancel(&mut self, number: u64) -> Option<W> {
        let at = self.waiting.binary_search_by_key(&number, |waiting| waiting.number).ok()?;
        let what = self.waiting[at].what.take()?;
        self.gone += 1;
        self.tidy();
        Some(what)
    }

    /// Drops the places of those who left: at both ends at once, in between before they outnumber the others.
    fn tidy(&mut self) {
        while self.waiting.front().is_some_and(|first| first.what.is_none()) {
            self.waiting.pop_front();
            self.gone -= 1;
        }
        while self.waiting.back().is_some_and(|last| last.what.is_none()) {
            self.waiting.pop_back();
            self.gone -= 1;
        }
        if self.gone > self.waiting.len() / 2 {
            self.waiting.retain(|waiting| waiting.what.is_some());
            self.gone = 0;
        }
    }

    /// Those who came up to that number.
    pub(super) fn until(&self, number: u64) -> impl Iterator<Item = &W> {
        let first = self.waiting.iter().take_while(move |waiting| waiting.number <= number);
        first.filter_map(|waiting| waiting.what.as_ref())
    }

    /// Whether this one still waits here.
    pub(super) fn holds(&self, number: u64) -> bool {
        let at = self.waiting.binary_search_by_key(&number, |waiting| waiting.number);
        at.is_ok_and(|at| self.waiting[at].what.is_some())
    }
}

/// The open lanes.
#[derive(Debug, Clone)]
pub(super) struct Lanes<W> {
    slots: Vec<Option<Lane<W>>>,
    free: Vec<u32>,
    by_key: HashMap<LaneKey, u32>,
    /// The one that was opened last: the calls of a run ask for the same one after the other.
    newest: u32,
}

impl<W> Lanes<W> {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), by_key: HashMap::new(), newest: 0 }
    }

    pub(super) fn find(&self, key: &LaneKey) -> Option<u32> {
        match self.get(self.newest) {
            Some(lane) if lane.key == *key => Some(self.newest),
            _ => self.by_key.get(key).copied(),
        }
    }

    /// The lane that is open, if it is the only one: it goes before nobody and after nobody.
    pub(super) fn only(&self) -> Option<u32> {
        let newest = || self.get(self.newest).map(|_| self.newest); // nearly always, and it needs no search
        if self.by_key.len() == 1 { newest().or_else(|| self.by_key.values().next().copied()) } else { None }
    }

    /// Whether there is but one, or none.
    pub(super) fn are_one(&self) -> bool {
        self.by_key.len() <= 1
    }

    /// Whether its place in the lists matters to nobody before another lane opens.
    pub(super) fn may_stay_listed(&self, at: u32) -> bool {
        self.by_key.len() == 1 && self.open_one(at).stays_listed()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The lane of a ticket, if it is open; its number tells whether it is still the same lane.
    pub(super) fn get(&self, at: u32) -> Option<&Lane<W>> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// A lane that is listed somewhere.
    pub(super) fn open_one(&self, at: u32) -> &Lane<W> {
        self.get(at).expect("open lanes only are listed")
    }

    pub(super) fn open_one_mut(&mut self, at: u32) -> &mut Lane<W> {
        self.slots[at as usize].as_mut().expect("open lanes only are listed")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane<W>> {
        self.slots.iter().flatten()
    }

    pub(super) fn open(&mut self, key: LaneKey) -> u32 {
        let lane = Some(Lane { key, waiting: VecDeque::new(), gone: 0, listed: None });
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
        self.newest = at;
        at
    }

    pub(super) fn close(&mut self, at: u32) {
        if let Some(lane) = self.slots[at as usize].take() {
            self.by_key.remove(&lane.key);
            self.free.push(at);
        }
    }
}
