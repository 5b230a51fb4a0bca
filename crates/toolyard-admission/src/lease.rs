//! What leases are for, and in which state the calls on them are.

use std::sync::Arc;

/// The scope of a lease, in order of rank: a tree's is the lowest, named ones rank by name (CC-8).
///
/// # Examples
/// ```
/// use toolyard_admission::Scope;
/// let [a, b] = ["a", "b"].map(|name| Scope::Named(name.into()));
/// assert!(Scope::Tree < a && a < b);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// One session and everything under it.
    Tree,
    /// A scope that tools have named, shared by the whole engine.
    Named(Arc<str>),
}

/// The state of a serial call that has an entry on a lease.
///
/// # Examples
/// ```
/// use toolyard_admission::EntryState;
/// let lends = |state| matches!(state, EntryState::Parked | EntryState::Stopped);
/// assert!(lends(EntryState::Parked) && !lends(EntryState::Running));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryState {
    /// Its handler runs.
    Running,
    /// Its handler awaits calls of its own, and the lease is lent to them.
    Parked,
    /// Its handler waits to resume.
    Resuming,
    /// Its handler has stopped; a call under it has not.
    Stopped,
    /// Its handler was abandoned and still runs.
    Zombie,
}
