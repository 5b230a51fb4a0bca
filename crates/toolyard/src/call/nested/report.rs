//! What a call that has ended reports upwards.

/// What a call that has ended reports upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// Only listed zombies keep it from being quiescent (V2).
    Listed,
    /// It is quiescent.
    Quiescent,
    /// It is quiescent and had been listed before.
    ListedQuiescent,
}
