//! The open lanes, and how they are found.

use super::{group::Groups, key::LaneKey, lane::Lane};
use foldhash::{HashMap, HashMapExt};

/// The open lanes.
#[derive(Debug, Clone)]
pub(crate) struct Lanes<W> {
    slots: Vec<Option<Lane<W>>>,
    free: Vec<u32>,
    by_key: HashMap<LaneKey, u32>,
    /// The lane opened last, checked first because the calls of a run ask for the same lane one after the other.
    newest: u32,
}

impl<W> Lanes<W> {
    pub(crate) fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), by_key: HashMap::new(), newest: 0 }
    }

    pub(crate) fn find(&self, key: &LaneKey) -> Option<u32> {
        match self.get(self.newest) {
            Some(lane) if lane.key == *key => Some(self.newest),
            _ => self.by_key.get(key).copied(),
        }
    }

    /// The open lane, if there is only one: it needs no place relative to others.
    pub(crate) fn only(&self) -> Option<u32> {
        let newest = || self.get(self.newest).map(|_| self.newest); // almost always the right one, and needs no search
        if self.by_key.len() == 1 { newest().or_else(|| self.by_key.values().next().copied()) } else { None }
    }

    /// Whether at most one lane is open.
    pub(crate) fn at_most_one(&self) -> bool {
        self.by_key.len() <= 1
    }

    /// Whether the lane need not be relisted: it is the only one, so its place in the lists matters only when another
    /// opens.
    pub(crate) fn may_stay_listed(&self, at: u32) -> bool {
        self.by_key.len() == 1 && self.open_one(at).stays_listed()
    }

    /// The number of slots for lanes, open or not.
    #[cfg(test)]
    pub(crate) fn slots(&self) -> u32 {
        u32::try_from(self.slots.len()).expect("fewer than 2^32 lanes are open")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The lane in this slot, if one is open. A ticket's number tells whether it is still the ticket's lane.
    pub(crate) fn get(&self, at: u32) -> Option<&Lane<W>> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// A lane that is known to be open because it is listed somewhere.
    pub(crate) fn open_one(&self, at: u32) -> &Lane<W> {
        self.get(at).expect("only open lanes are listed")
    }

    pub(crate) fn open_one_mut(&mut self, at: u32) -> &mut Lane<W> {
        self.slots[at as usize].as_mut().expect("only open lanes are listed")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Lane<W>> {
        self.slots.iter().flatten()
    }

    pub(crate) fn open(&mut self, key: LaneKey, groups: Groups) -> u32 {
        let lane = Some(Lane::new(key, groups));
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

    pub(crate) fn close(&mut self, at: u32) {
        if let Some(lane) = self.slots[at as usize].take() {
            self.by_key.remove(&lane.key);
            self.free.push(at);
        }
    }
}
