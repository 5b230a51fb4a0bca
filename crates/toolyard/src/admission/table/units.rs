//! The counting semaphores, called units.

use super::queue::Queue;
use super::slab::Key;
use super::sleep::Reach;
use toolyard_core::ToolClass;

/// The id of a counting semaphore in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct UnitId(pub(super) Key);

/// What a unit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitKind {
    /// The width of a pool. Serial calls have a lease instead.
    Class(ToolClass),
    /// Calls of one tool, in one agent or a wider scope.
    Tool,
    /// Calls of one session.
    Session,
    /// Calls of a session and everything under it.
    Tree,
    /// Blocking handlers, which have a thread each.
    Threads,
}

/// One counting semaphore. It is kept small while nothing waits, because a fork opens several.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) kind: UnitKind,
    pub(super) reach: Reach,
    pub(super) paused: bool,
    pub(super) width: usize,
    pub(super) in_use: usize,
    /// How many of those in use are held by zombies.
    pub(super) zombies: usize,
    /// How many waiting calls need this unit. Handlers that resume are not counted.
    pub(super) queued: usize,
    /// The lanes that need this unit; `None` while there are none.
    pub(super) queue: Option<Box<Queue>>,
}

impl Unit {
    pub(super) fn new((kind, reach): (UnitKind, Reach), width: usize, paused: bool) -> Self {
        Self { kind, reach, paused, width, in_use: 0, zombies: 0, queued: 0, queue: None }
    }

    /// Whether a new call may take one, leaving one more free if one is held back for another call.
    pub(super) fn is_free(&self, held_back: bool) -> bool {
        !self.paused && self.has_room(held_back)
    }

    /// Whether fewer than its width are in use. A resume asks this and not [`Unit::is_free`]: a pause stops new
    /// calls, and a handler that resumes is already running.
    pub(super) fn has_room(&self, held_back: bool) -> bool {
        self.in_use + usize::from(held_back) < self.width
    }

    /// Whether zombies alone hold it, so that no running call's end will free it (V3).
    pub(super) fn is_held_by_zombies(&self) -> bool {
        !self.paused && self.is_full_of_zombies()
    }

    /// The same for a resume, which a pause does not hold back.
    pub(super) fn is_full_of_zombies(&self) -> bool {
        self.zombies >= self.width
    }
}
