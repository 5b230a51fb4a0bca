//! Why a batch ends early.

/// Why a batch ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Its caller, turn or session was cancelled.
    Cancelled,
    /// The engine drains.
    ShuttingDown,
    /// A pool was given up, and the engine with it (RA-5).
    Failed,
    /// A handler of an earlier run was given up and does not stop (CL-3).
    Zombie,
    /// A serial call failed and the rest is to be skipped (CL-4).
    Predecessor,
    /// The call whose handler dispatched it has ended.
    Orphaned,
    /// Too many handlers are parked (CC-4).
    TooManyParked,
    /// What its session has done in earlier lives of the engine cannot be read (JR-10).
    Unread,
}

impl Stop {
    /// Whether running calls are to stop too.
    pub(crate) const fn reaches_running(self) -> bool {
        matches!(self, Self::Cancelled | Self::Failed)
    }
}
