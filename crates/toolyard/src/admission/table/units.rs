//! The counting semaphores.

use super::queue::Queue;
use super::slab::Key;
use toolyard_core::ToolClass;

/// A counting semaphore of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UnitId(pub(super) Key);

/// What a unit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// The width of a pool. Serial calls have a lease in its place.
    Class(ToolClass),
    /// Calls of one tool, in one agent or wider.
    Tool,
    /// Calls of one session.
    Session,
    /// Calls of a session and everything under it.
    Tree,
}

/// One counting semaphore. It is small while nobody waits: a fork opens several.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    pub(super) paused: bool,
    pub(super) width: usize,
    pub(super) in_use: usize,
    /// How many of those in use are held by handlers that were given up and still run.
    pub(super) zombies: usize,
    /// Calls that wait and need this unit. Handlers that resume are not among them.
    pub(super) queued: usize,
    /// The lanes that need this unit; `None` while there are none.
    pub(super) queue: Option<Box<Queue>>,
}

impl Unit {
    pub(super) fn new(kind: UnitKind, width: usize, paused: bool) -> Self {
        Self { kind, paused, width, in_use: 0, zombies: 0, queued: 0, queue: None }
    }

    /// Whether a new call may have one, and one more if one is held back for another.
    pub(super) fn is_free(&self, held_back: bool) -> bool {
        !self.paused && self.has_room(held_back)
    }

    /// Whether fewer than its width are out. This, not [`Unit::is_free`], is what a resume asks: a pause stops
    /// new calls, and a handler that resumes is one that runs.
    pub(super) fn has_room(&self, held_back: bool) -> bool {
        self.in_use + usize::from(held_back) < self.width
    }

    /// Whether it is held by handlers that were given up, and by them alone: it does not come free by itself (V3).
    pub(super) fn is_held_by_zombies(&self) -> bool {
        !self.paused && self.is_full_of_zombies()
    }

    /// The same to a resume, which no pause holds back.
    pub(super) fn is_full_of_zombies(&self) -> bool {
        self.zombies >= self.width
    }
}
