//! The state of a pool as seen from outside.

use serde::Serialize;
use toolyard_core::ToolClass;

/// The state of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolState {
    /// Calls are admitted.
    Running,
    /// New calls wait; running calls continue.
    Paused,
    /// New calls are answered `shutting_down`; running calls continue.
    Draining,
    /// The pool has been given up: calls are answered `internal`.
    Failed,
}

/// The status of a pool at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PoolStatus {
    /// Its class.
    pub class: ToolClass,
    /// Its state.
    pub state: PoolState,
    /// How many calls may run at once: in the engine (read), in a session tree (serial), in an agent (concurrent).
    pub width: usize,
    /// How many calls hold a permit, in the whole engine.
    pub running: usize,
    /// How many calls wait for a permit, in the whole engine.
    pub queued: usize,
    /// How often its actor has been restarted.
    pub restarts: u32,
}
