//! What a pool looks like from outside.

use serde::Serialize;
use toolyard_core::ToolClass;

/// Where a pool is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolState {
    /// Calls are admitted.
    Running,
    /// Calls wait; those that run go on.
    Paused,
    /// New calls are answered `shutting_down`; those that run go on.
    Draining,
    /// The pool's supervisor has given it up: calls are answered `internal`.
    Failed,
}

/// A pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Its class.
    pub class: ToolClass,
    /// Where it is in its life.
    pub state: PoolState,
    /// Calls at once: in the engine (read), in a session tree (serial), in an agent (concurrent).
    pub width: usize,
    /// Calls that hold a permit, in the whole engine.
    pub running: usize,
    /// Calls that wait for one, in the whole engine.
    pub queued: usize,
    /// How often its actor has been restarted.
    pub restarts: u32,
}

/// How many calls run and wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolLoad {
    pub(crate) running: usize,
    pub(crate) queued: usize,
}
