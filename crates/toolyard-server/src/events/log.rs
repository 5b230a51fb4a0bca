//! The events of one stream that are still there, in the order of their positions.

use super::Kept;
use std::{collections::VecDeque, sync::Arc};

/// The latest events of a session, or of all of them.
#[derive(Debug, Default)]
pub(super) struct Log {
    kept: VecDeque<Arc<Kept>>,
    /// The position of the last event that is kept no longer.
    gone_to: u64,
}

/// The events after a position are kept no longer: reading goes on after this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost(pub(super) u64);

impl Log {
    /// Adds an event, whose position is the highest so far.
    pub(super) fn push(&mut self, event: Arc<Kept>) {
        self.kept.push_back(event);
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Forgets the oldest event.
    pub(super) fn pop(&mut self) -> Option<Arc<Kept>> {
        let oldest = self.kept.pop_front()?;
        self.gone_to = oldest.position();
        Some(oldest)
    }

    /// Forgets the oldest event if it has this position.
    pub(super) fn pop_if(&mut self, position: u64) {
        if self.kept.front().is_some_and(|oldest| oldest.position() == position) {
            self.pop();
        }
    }

    /// The first events after a position, as many as that.
    ///
    /// # Errors
    /// [`Lost`] if some of them are kept no longer.
    pub(super) fn after(&self, position: u64, most: usize) -> Result<Vec<Arc<Kept>>, Lost> {
        if position < self.gone_to {
            return Err(Lost(self.gone_to));
        }
        let from = self.kept.partition_point(|event| event.position() <= position);
        Ok(self.kept.range(from..).take(most).cloned().collect())
    }
}
