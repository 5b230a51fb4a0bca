//! The in-flight batches of a session, so that a cancel can reach them.

use std::sync::{Arc, Weak};

/// Weak references to items that may be in flight. Items are never removed one by one, which would cost as much as
/// adding them: finished ones are swept out when the list needs room. Until then they keep only their allocation, not
/// its content.
pub(crate) struct WeakList<T>(Vec<Weak<T>>);

impl<T> Default for WeakList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> WeakList<T> {
    /// Adds an item, without keeping it alive.
    pub(crate) fn push(&mut self, one: &Arc<T>) {
        // When items follow each other one at a time, the list never holds more than one.
        while self.0.pop_if(|last| last.strong_count() == 0).is_some() {}
        if self.0.len() == self.0.capacity() {
            self.sweep();
        }
        self.0.push(Arc::downgrade(one));
    }

    /// Removes finished items and reserves as much room again, so that the next sweep comes only after as many
    /// pushes.
    fn sweep(&mut self) {
        self.0.retain(|one| one.strong_count() > 0);
        self.0.reserve(self.0.len());
    }

    /// The items in flight, in the order in which they were added.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<T>> {
        self.0.iter().filter_map(Weak::upgrade)
    }

    /// Keeps only the items that are alive and fit. Returns all that are alive, to be dropped outside of locks.
    pub(crate) fn retain(&mut self, fits: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let alive: Vec<_> = self.iter().collect();
        self.0 = alive.iter().filter(|one| fits(one)).map(Arc::downgrade).collect();
        alive
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn finished_items_are_not_listed() {
        let mut list = WeakList::default();
        let all: Vec<Arc<usize>> = (0..10).map(Arc::new).collect();
        all.iter().for_each(|one| list.push(one));
        let odd: Vec<_> = all.into_iter().filter(|one| **one % 2 == 1).collect();
        assert_eq!(list.iter().map(|one| *one).collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
        drop(odd);
        assert_eq!(list.iter().count(), 0);
    }

    #[test]
    fn one_after_another_needs_one_place() {
        let mut list = WeakList::default();
        (0..1000).map(Arc::new).for_each(|one| list.push(&one));
        assert_eq!(list.0.len(), 1);
    }

    /// The latest item is always in flight here, so that the shortcut for a finished last item never applies.
    #[test]
    fn overlapping_items_need_few_places() {
        for at_once in [2, 3, 17] {
            let (mut list, mut alive) = (WeakList::default(), VecDeque::new());
            for n in 0..10_000 {
                alive.push_back(Arc::new(n));
                list.push(alive.back().unwrap());
                if alive.len() == at_once {
                    alive.pop_front();
                }
                assert_eq!(list.iter().count(), alive.len());
            }
            assert!(list.0.capacity() <= 4 * at_once, "{} places for {at_once}", list.0.capacity());
        }
    }
}
