//! How a call ended.

use std::path::PathBuf;
use toolyard_process::HeadTail;

/// A call that has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// How.
    pub end: End,
    /// What it printed on standard output.
    pub output: HeadTail,
    /// What it printed on standard error.
    pub errors: HeadTail,
    /// What it changed, as the machine says; or why that is not known.
    pub changes: Result<Vec<Change>, String>,
}

/// How a program in a machine came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum End {
    /// It was not started, for this reason.
    NotStarted(String),
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// It printed more than is taken.
    OutputLimit,
    /// Its machine ended under it.
    Vanished,
    /// It was stopped from outside.
    Stopped,
}

/// Something that is not as it was sent. Paths are those of the machine, and lie in what was to be
/// [returned](super::Call::returned).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A directory that is new.
    Directory(PathBuf),
    /// A file that is new or was written.
    File {
        /// Where.
        path: PathBuf,
        /// All of its content.
        content: Vec<u8>,
    },
    /// What was sent, and is no more.
    Removed(PathBuf),
}

/// There was no machine for the program: it has not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
#[non_exhaustive]
pub struct Broken {
    /// What happened.
    pub why: String,
}

impl Broken {
    pub(crate) fn new(why: impl std::fmt::Display) -> Self {
        Self { why: why.to_string() }
    }
}
