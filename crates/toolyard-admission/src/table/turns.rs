//! The turns of root sessions, and their weights (CC-3).

use super::Table;
use crate::store::{party::PlaceInLine, queue::Turn};

impl<W: PlaceInLine> Table<W> {
    /// Sets the weight of a root session: how many of its calls are granted before it is another session's turn
    /// (CC-3). The default is 1; the caller resets a session that ends to 1.
    pub(crate) fn set_weight(&mut self, root: u64, weight: u8) {
        debug_assert!(matches!(weight, 1 | 2 | 4), "a priority is one of three");
        if weight > 1 {
            self.weights.insert(root, weight);
        } else {
            self.weights.remove(&root);
        }
    }

    /// A new turn for a root session, behind all others.
    pub(super) fn next_turn(&mut self, root: u64) -> Turn {
        self.turns += 1;
        let weight = self.weight(root);
        self.weighted |= weight > 1;
        Turn { number: self.turns, weight }
    }

    pub(super) fn weight(&self, root: u64) -> u8 {
        if self.weights.is_empty() { 1 } else { self.weights.get(&root).copied().unwrap_or(1) }
    }
}
