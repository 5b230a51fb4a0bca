//! How many questions are open, by turn and by the owner of their session (HT-10).

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use toolyard::SessionId;

/// The open questions, counted.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Whose a session is. One of an MCP client is its own.
    owners: HashMap<SessionId, Arc<str>>,
    by_owner: HashMap<Arc<str>, usize>,
    by_turn: HashMap<SessionId, BTreeMap<u64, usize>>,
}

impl Tally {
    pub(super) fn belongs(&mut self, session: SessionId, owner: &str) {
        self.owners.insert(session, owner.into());
    }

    /// Forgets a session that has no questions any more.
    pub(super) fn forget(&mut self, session: &SessionId) {
        self.owners.remove(session);
    }

    /// Whether a session is that of this owner.
    pub(super) fn is_of(&self, session: &SessionId, owner: &str) -> bool {
        self.owners.get(session).is_some_and(|known| **known == *owner)
    }

    fn owner(&self, session: &SessionId) -> Arc<str> {
        self.owners.get(session).cloned().unwrap_or_else(|| session.as_str().into())
    }

    /// Counts a question, if its owner has fewer than that.
    pub(super) fn add(&mut self, session: &SessionId, turn: u64, most: usize) -> bool {
        let count = self.by_owner.entry(self.owner(session)).or_default();
        if *count >= most {
            return false;
        }
        *count += 1;
        *self.by_turn.entry(session.clone()).or_default().entry(turn).or_default() += 1;
        true
    }

    pub(super) fn remove(&mut self, session: &SessionId, turn: u64) {
        let owner = self.owner(session);
        if let Some(count) = self.by_owner.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.by_owner.remove(&owner);
            }
        }
        let Some(turns) = self.by_turn.get_mut(session) else { return };
        if let Some(count) = turns.get_mut(&turn) {
            *count -= 1;
            if *count == 0 {
                turns.remove(&turn);
            }
        }
        if turns.is_empty() {
            self.by_turn.remove(session);
        }
    }

    pub(super) fn of_turn(&self, session: &SessionId, turn: u64) -> usize {
        self.by_turn.get(session).and_then(|turns| turns.get(&turn)).copied().unwrap_or_default()
    }

    pub(super) fn of_session(&self, session: &SessionId) -> usize {
        self.by_turn.get(session).map_or(0, |turns| turns.values().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-10: questions of an owner are bounded over all of its sessions, and those that are settled are not counted.
    #[test]
    fn questions_of_an_owner_are_bounded() {
        let (mut tally, [a, b, c]) = (Tally::default(), ["a", "b", "c"].map(SessionId::from));
        tally.belongs(a.clone(), "ada");
        tally.belongs(b.clone(), "ada");
        assert!(tally.add(&a, 1, 2) && tally.add(&b, 7, 2) && !tally.add(&b, 7, 2));
        assert!(tally.add(&c, 1, 2), "somebody else's");
        assert_eq!((tally.of_turn(&a, 1), tally.of_turn(&a, 2), tally.of_session(&b)), (1, 0, 1));
        tally.remove(&a, 1);
        assert!(tally.add(&b, 8, 2));
        [7, 8].iter().for_each(|turn| tally.remove(&b, *turn));
        tally.remove(&c, 1);
        tally.forget(&a);
        assert!(tally.by_owner.is_empty() && tally.by_turn.is_empty());
    }
}
