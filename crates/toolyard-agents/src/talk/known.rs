//! The ids of an agent's calls: which have no answer, and which had one lately.

use super::CALLS_OPEN_MAX;
use foldhash::fast::RandomState;
use std::{
    collections::{HashMap, VecDeque},
    hash::BuildHasher as _,
};
use toolyard::CallId;

/// How many answered calls are remembered.
pub(super) const ANSWERED_MAX: usize = 1_024;

/// How many bytes of arguments calls without an answer may have, before the next one waits.
pub(super) const BYTES_OPEN_MAX: usize = 8 << 20;

/// The calls that an agent may name.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Those without an answer, with the size of their arguments.
    open: HashMap<CallId, usize, RandomState>,
    bytes: usize,
    /// The ids of those answered last, as hashes: an agent's ids may be long, and one that is taken for another harms
    /// nobody but that agent, whom nothing helps to find one.
    answered: VecDeque<u64>,
    hasher: RandomState,
}

impl Known {
    /// How many calls have no answer.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_open(&self, id: &CallId) -> bool {
        self.open.contains_key(id)
    }

    /// Whether a call of this id was sent, as far as that is remembered.
    pub(super) fn knows(&self, id: &CallId) -> bool {
        self.is_open(id) || self.answered.contains(&self.hasher.hash_one(id))
    }

    /// Whether one more call may be taken.
    pub(super) fn has_room(&self) -> bool {
        self.open.len() < CALLS_OPEN_MAX && self.bytes < BYTES_OPEN_MAX
    }

    /// The id of a call without an answer, as it is kept.
    pub(super) fn in_flight(&self, id: &CallId) -> Option<CallId> {
        self.open.get_key_value(id).map(|(id, _)| id.clone())
    }

    /// A call comes, with so many bytes of arguments. Returns `false` if one of its id has no answer yet.
    pub(super) fn begins(&mut self, id: &CallId, bytes: usize) -> bool {
        let is_new = !self.is_open(id);
        if is_new {
            self.open.insert(id.clone(), bytes);
            self.bytes += bytes;
        }
        is_new
    }

    /// A call is answered.
    pub(super) fn ends(&mut self, id: &CallId) {
        self.bytes -= self.open.remove(id).unwrap_or(0);
        if self.answered.len() == ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(self.hasher.hash_one(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AG-3: a finished call is known, as long as few enough came after it.
    #[test]
    fn answered_calls_are_known_for_a_while() {
        let (mut known, first) = (Known::default(), CallId::from("first"));
        assert!(!known.knows(&first));
        assert!(known.begins(&first, 1) && !known.begins(&first, 1));
        known.ends(&first);
        assert!(known.knows(&first) && !known.is_open(&first));
        for n in 1..ANSWERED_MAX {
            known.ends(&CallId::from(n.to_string().as_str()));
        }
        assert!(known.knows(&first));
        known.ends(&CallId::from("last"));
        assert!(!known.knows(&first) && known.knows(&CallId::from("last")));
    }
}
