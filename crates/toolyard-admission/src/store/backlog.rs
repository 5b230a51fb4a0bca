//! What a large change has freed and is still to be looked at (`table/slices.rs`).

use super::resource::Resource;
use foldhash::{HashSet, HashSetExt};
use std::collections::VecDeque;

/// How many waiters one slice grants, and how many freed resources it looks at. Enough to make the lock's price
/// small, few enough to hold it for microseconds.
pub(crate) const SLICE: usize = 32;

/// What has been freed and is still to be looked at.
#[derive(Debug, Clone)]
pub(crate) struct Backlog {
    queue: VecDeque<Resource>,
    all: HashSet<Resource>,
    /// Whether a change has put off something, and its caller has not been told of it.
    pub(crate) is_new: bool,
    /// [`SLICE`], except in tests.
    pub(crate) slice: usize,
}

impl Default for Backlog {
    fn default() -> Self {
        Self { queue: VecDeque::new(), all: HashSet::new(), is_new: false, slice: SLICE }
    }
}

impl Backlog {
    /// Adds a resource at the end, if it is not there already.
    pub(crate) fn push(&mut self, resource: Resource) {
        if self.all.insert(resource) {
            self.queue.push_back(resource);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Resource> {
        let next = self.queue.pop_front()?;
        self.all.remove(&next);
        Some(next)
    }

    /// Puts a resource back in front of all others, if it is not there already.
    pub(crate) fn put_back(&mut self, resource: Resource) {
        if self.all.insert(resource) {
            self.queue.push_front(resource);
        }
    }

    pub(crate) fn has(&self, resource: Resource) -> bool {
        self.all.contains(&resource)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        if !self.is_empty() {
            (self.queue, self.all) = (VecDeque::new(), HashSet::new());
        }
        self.is_new = false;
    }
}
