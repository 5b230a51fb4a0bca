//! Bounds of the memory that results take.

/// The most bytes of results that are held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// By a batch.
    pub batch: usize,
    /// By a session and its forks.
    pub session: usize,
    /// By all sessions.
    pub engine: usize,
}
