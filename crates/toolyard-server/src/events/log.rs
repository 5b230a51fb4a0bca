//! Which events of a session are still there, in the order of their positions.

use std::collections::VecDeque;

/// The positions of the latest events of a session.
#[derive(Debug, Default)]
pub(super) struct Log {
    kept: VecDeque<u64>,
    /// The position of the last event that is kept no longer.
    gone_to: u64,
}

/// The events after a position are kept no longer: reading goes on after this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lost(pub(super) u64);

impl Log {
    /// Adds an event, whose position is the highest so far.
    pub(super) fn push(&mut self, position: u64) {
        self.kept.push_back(position);
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Forgets the oldest event.
    pub(super) fn pop(&mut self) {
        if let Some(oldest) = self.kept.pop_front() {
            self.gone_to = oldest;
        }
    }

    /// Forgets the oldest event if it has this position.
    pub(super) fn pop_if(&mut self, position: u64) {
        if self.kept.front() == Some(&position) {
            self.pop();
        }
    }

    /// The positions of the first events after this one, as many as that.
    ///
    /// # Errors
    /// [`Lost`] if some of them are kept no longer.
    pub(super) fn after(
        &self,
        position: u64,
        most: usize,
    ) -> Result<impl Iterator<Item = u64> + use<'_>, Lost> {
        if position < self.gone_to {
            return Err(Lost(self.gone_to));
        }
        let from = self.kept.partition_point(|kept| *kept <= position);
        Ok(self.kept.range(from..).take(most).copied())
    }
}
