//! How a call ended.

use std::time::Duration;
use toolyard_process::HeadTail;

/// A call that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// How.
    pub end: End,
    /// A limit that the guest was refused something by, and went on: a memory that did not grow.
    pub refused: Option<Limit>,
    /// What it printed on standard output.
    pub output: HeadTail,
    /// What it printed on standard error.
    pub errors: HeadTail,
    /// The most memory that it had, in bytes, with its tables.
    pub memory_peak: u64,
    /// The time that it computed.
    pub cpu: Duration,
}

/// How a guest came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It exited with this code; 0 also for one that returns.
    Exited(i32),
    /// It did something that ends a module, such as to divide by zero: what it was, and where if that is known.
    Trapped(String),
    /// It ran into a limit.
    Limit(Limit),
    /// It was stopped from outside.
    Stopped,
}

/// A limit that a guest ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The time that has passed.
    WallTime,
    /// The time that it computed.
    CpuTime,
    /// Memory and tables.
    Memory,
    /// Open files, and what else the host holds for it.
    OpenFiles,
    /// What it prints.
    Output,
}

impl Limit {
    /// Its name, for a message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WallTime => "wall time",
            Self::CpuTime => "CPU time",
            Self::Memory => "memory",
            Self::OpenFiles => "open files",
            Self::Output => "output",
        }
    }
}

/// The runtime failed rather than the module. The guest has not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
#[non_exhaustive]
pub struct Broken {
    /// What happened.
    pub why: String,
}
