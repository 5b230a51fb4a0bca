//! What the waiters of a lane have in common.

use crate::{ids::EntryId, need::Need};

/// The waiters of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    /// Calls that have not started.
    Call {
        root: u64,
        depth: u8,
        /// Their nearest ancestor on the lease they need: while it is on top, they may push onto the lease (CC-7).
        holder: Option<EntryId>,
        /// Whether they may not wait for the lease they need (CC-8).
        may_not_wait: bool,
    },
    /// Parked handlers that wait to resume. Each of those with a lease entry has a lane of its own.
    Resume { entry: Option<EntryId> },
}

/// What all waiters of a lane have in common: if one of them can start, each of them can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LaneKey {
    pub(crate) need: Need,
    pub(crate) who: Who,
}
