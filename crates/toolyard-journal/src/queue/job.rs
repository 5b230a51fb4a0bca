//! What waits in the queue: a record, who waits for it, and how much it counts.

use crate::op::Op;

/// A record, and who waits for it.
pub(crate) struct Job {
    /// `None` only waits for those before it.
    pub(crate) op: Option<Op>,
    /// The number of whoever waits for it.
    pub(crate) asked: Option<u64>,
    pub(crate) faulty: Faulty,
    /// Whether nobody needs it: nothing waits for it, and it may be left out.
    pub(crate) is_spare: bool,
    /// What it counts in the bounds.
    pub(crate) bytes: usize,
    pub(crate) records: usize,
}

impl Job {
    /// Whether it stays to be written once those who have waited too long are told, who are taken out of it.
    pub(crate) fn stays(&mut self, told: &mut Vec<u64>) -> bool {
        if self.faulty == Faulty::Awaited {
            return true;
        }
        told.extend(self.asked.take());
        self.faulty == Faulty::Kept && self.op.is_some()
    }
}

/// What becomes of a record while the disk is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Faulty {
    /// It is refused, and not written later: what it would allow does not happen.
    Refused,
    /// It has happened, and waits until there is room; whoever waits for it is told that this takes too long.
    Kept,
    /// It waits until there is room, and so does whoever waits for it: all that its session does builds on it.
    Awaited,
}

/// How much waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    pub(super) records: usize,
    pub(super) bytes: usize,
}

impl Held {
    pub(super) fn of<'a>(jobs: impl Iterator<Item = &'a Job>) -> Self {
        jobs.fold(Self::default(), |held, job| held.with(job.records, job.bytes))
    }

    /// With so many more, of this many bytes together.
    pub(super) fn with(self, records: usize, bytes: usize) -> Self {
        Self { records: self.records + records, bytes: self.bytes.saturating_add(bytes) }
    }

    /// Whether there is no room for one more in this much; a single one may have more bytes.
    pub(super) fn fills(self, max: Self, bytes: usize) -> bool {
        self.records >= max.records || (self.records > 0 && self.with(1, bytes).bytes > max.bytes)
    }
}
