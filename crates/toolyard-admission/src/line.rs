//! What runs, what waits and what it waits for, as shown to people.

use crate::{
    lease::{EntryState, Scope},
    unit::UnitKind,
};
use std::time::Duration;

/// How many calls of a class are running and waiting.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, PoolLoad};
/// use toolyard_core::ToolClass;
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// assert_eq!(admission.load(ToolClass::Read), PoolLoad { running: 0, queued: 0 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolLoad {
    /// How many run. Parked handlers do not count.
    pub running: usize,
    /// How many calls wait. Handlers that wait to resume do not count.
    pub queued: usize,
}

/// A lane, as [`Admission::lines`](crate::Admission::lines) shows it to a person.
///
/// # Examples
/// ```
/// use toolyard_admission::Line;
/// /// One sentence for a status page.
/// fn sentence(line: &Line) -> String {
///     format!("{} wait, the first for {:?}; {} things are missing", line.waiting, line.oldest, line.missing.len())
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The root session of the waiters. `None` for resumes of handlers that are not serial, which may be of several.
    pub root: Option<u64>,
    /// Whether the waiters are handlers that wait to resume.
    pub resumes: bool,
    /// How deep they are nested.
    pub depth: u8,
    /// How many wait in it.
    pub waiting: usize,
    /// How long the head has waited.
    pub oldest: Duration,
    /// What it lacks: resources that are unavailable now, or held back for another call.
    pub missing: Vec<Missing>,
    /// Whether it has the reservation: resources are held back for it (CC-3b).
    pub reserves: bool,
}

/// A resource that a waiter lacks.
///
/// # Examples
/// ```
/// use toolyard_admission::{Missing, UnitKind};
/// let tree = UnitKind::Tree;
/// let missing = Missing::Unit { kind: tree, in_use: 8, width: 8, zombies: 0, paused: false };
/// assert!(matches!(missing, Missing::Unit { in_use, width, .. } if in_use == width));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// A unit and its state.
    Unit {
        /// What it bounds.
        kind: UnitKind,
        /// How many are in use.
        in_use: usize,
        /// How wide the unit is.
        width: usize,
        /// How many of those in use are held by zombies.
        zombies: usize,
        /// Whether its class is paused.
        paused: bool,
    },
    /// A lease and its stack.
    Lease {
        /// Its scope.
        scope: Scope,
        /// Root session and state of each entry, from the top down.
        stack: Vec<(u64, EntryState)>,
        /// Whether the serial class is paused.
        paused: bool,
    },
}
