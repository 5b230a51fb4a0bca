//! The names of the engine's questions.

use crate::chance::Chance;
use std::sync::atomic::{AtomicU64, Ordering};
use toolyard_core::RequestId;

/// Names requests: they count up, and each has a secret of its own (SM-6).
pub(crate) struct RequestIds {
    epoch: u64,
    /// How many there were.
    made: AtomicU64,
}

impl RequestIds {
    pub(crate) fn new(chance: &Chance) -> Self {
        Self { epoch: chance.epoch(), made: AtomicU64::new(0) }
    }

    /// The next id.
    pub(crate) fn next(&self, chance: &Chance) -> RequestId {
        let number = self.made.fetch_add(1, Ordering::Relaxed) + 1;
        RequestId::new(self.epoch, number, chance.secret("request", number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-6: who has seen an id can guess neither the next one nor that of another engine.
    #[test]
    fn ids_count_up_and_cannot_be_guessed() {
        let chance = Chance::new(None);
        let ids = RequestIds::new(&chance);
        let [first, second] = [ids.next(&chance), ids.next(&chance)];
        assert_eq!((first.number(), second.number()), (1, 2));
        assert!(first.epoch() == second.epoch() && first < second);
        let secret = |id: RequestId| id.to_string().rsplit('.').next().unwrap().to_owned();
        assert_ne!(secret(first), secret(second));
        let other = Chance::new(None);
        let other_first = RequestIds::new(&other).next(&other);
        assert!(other_first.epoch() != first.epoch() && secret(other_first) != secret(first));
    }
}
