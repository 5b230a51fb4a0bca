//! The counting semaphores, called units.

use super::queue::Queue;
use crate::unit::{Reach, UnitKind};

/// One counting semaphore. It is kept small while nothing waits, because a fork opens several.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    pub(crate) kind: UnitKind,
    pub(crate) reach: Reach,
    pub(crate) paused: bool,
    pub(crate) width: usize,
    pub(crate) in_use: usize,
    /// How many of those in use are held by zombies.
    pub(crate) zombies: usize,
    /// How many waiting calls need this unit. Handlers that resume are not counted.
    pub(crate) queued: usize,
    /// The lanes that need this unit; `None` while there are none.
    pub(crate) queue: Option<Box<Queue>>,
}

impl Unit {
    pub(crate) fn new(kind: UnitKind, width: usize, paused: bool) -> Self {
        let reach = kind.reach();
        Self { kind, reach, paused, width, in_use: 0, zombies: 0, queued: 0, queue: None }
    }

    /// Whether a new call may take one, leaving one more free if one is held back for another call.
    #[inline]
    pub(crate) fn is_free(&self, held_back: bool) -> bool {
        !self.paused && self.has_room(held_back)
    }

    /// Whether fewer than its width are in use. A resume asks this and not [`Unit::is_free`]: a pause stops new
    /// calls, and a handler that resumes is already running.
    #[inline]
    pub(crate) fn has_room(&self, held_back: bool) -> bool {
        self.in_use + usize::from(held_back) < self.width
    }

    /// Whether zombies alone hold it, so that no running call's end will free it (V3).
    pub(crate) fn is_held_by_zombies(&self) -> bool {
        !self.paused && self.is_full_of_zombies()
    }

    /// The same for a resume, which a pause does not hold back.
    pub(crate) fn is_full_of_zombies(&self) -> bool {
        self.zombies >= self.width
    }
}

/// What all units of a class have in common, including those opened later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClassRule {
    pub(crate) width: usize,
    pub(crate) paused: bool,
}

impl ClassRule {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, paused: false }
    }
}
