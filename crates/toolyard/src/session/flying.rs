//! Whom a cancel of a session finds.

use std::sync::{Arc, Weak};

/// What may still be in the air of what was put here. Nobody has to take anything out, which would cost as much as to put
/// it in: what has landed makes room when something else comes. Until then its own memory is kept, not what it held.
pub(super) struct Flying<T>(Vec<Weak<T>>);

impl<T> Default for Flying<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Flying<T> {
    /// Puts something here; it is not kept.
    pub(super) fn push(&mut self, one: &Arc<T>) {
        // Where one comes after the other, there is never more than one here.
        while self.0.pop_if(|last| last.strong_count() == 0).is_some() {}
        if self.0.len() == self.0.capacity() {
            self.sweep();
        }
        self.0.push(Arc::downgrade(one));
    }

    /// Makes room: as much as there is once more, so that there is no sweep before as many have come.
    fn sweep(&mut self) {
        self.0.retain(|one| one.strong_count() > 0);
        self.0.reserve(self.0.len());
    }

    /// What is in the air, in the order in which it came.
    pub(super) fn in_air(&self) -> impl Iterator<Item = Arc<T>> {
        self.0.iter().filter_map(Weak::upgrade)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn what_has_landed_is_not_there() {
        let mut flying = Flying::default();
        let all: Vec<Arc<usize>> = (0..10).map(Arc::new).collect();
        all.iter().for_each(|one| flying.push(one));
        let odd: Vec<_> = all.into_iter().filter(|one| **one % 2 == 1).collect();
        assert_eq!(flying.in_air().map(|one| *one).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
        drop(odd);
        assert_eq!(flying.in_air().count(), 0);
    }

    #[test]
    fn one_after_another_needs_one_place() {
        let mut flying = Flying::default();
        (0..1000).map(Arc::new).for_each(|one| flying.push(&one));
        assert_eq!(flying.0.len(), 1);
    }

    /// The latest is always in the air here, so that nothing is ever the last and has landed.
    #[test]
    fn however_they_overlap_there_are_hardly_more_places_than_were_in_the_air_at_once() {
        for at_once in [2, 3, 17] {
            let (mut flying, mut in_air) = (Flying::default(), VecDeque::new());
            for n in 0..10_000 {
                in_air.push_back(Arc::new(n));
                flying.push(in_air.back().unwrap());
                if in_air.len() == at_once {
                    in_air.pop_front();
                }
                assert_eq!(flying.in_air().count(), in_air.len());
            }
            assert!(flying.0.capacity() <= 4 * at_once, "{} places for {at_once}", flying.0.capacity());
        }
    }
}
