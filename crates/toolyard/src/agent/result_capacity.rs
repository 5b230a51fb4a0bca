//! The memory that the results of a session tree, or of the engine, may take.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes of results many batches hold together.
#[derive(Debug)]
pub(crate) struct ResultCapacity {
    held: AtomicUsize,
    max: usize,
}

impl ResultCapacity {
    pub(crate) fn new(max: usize) -> Self {
        Self { held: AtomicUsize::new(0), max }
    }

    pub(crate) fn take(&self, bytes: usize) -> bool {
        let more = |held: usize| held.checked_add(bytes).filter(|held| *held <= self.max);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    pub(crate) fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The bound, in bytes.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Whether less than a step of this size is left.
    #[inline]
    pub(crate) fn is_spent(&self, step: usize) -> bool {
        self.held.load(Ordering::Relaxed) > self.max - step.min(self.max)
    }

    /// How many bytes are held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}
