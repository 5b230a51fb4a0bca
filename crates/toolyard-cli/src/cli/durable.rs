//! The arguments of what must not be lost.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Where it is recorded what a crash must not lose.
#[derive(Debug, Args)]
pub(crate) struct JournalArgs {
    /// Record in this file what a crash must not lose: calls as they were sent, secrets in them included, and their results.
    /// One program at a time writes a file; 'toolyard journal' reads it
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// What the records survive
    #[arg(long, value_name = "WHAT", default_value = "full", requires = "journal")]
    pub(crate) durability: Survives,
}

/// What records survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Survives {
    /// The loss of power
    Full,
    /// The end of the process, however it ends
    Process,
}

/// Which session of the journal it is.
#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// The session of the journal in which the response runs; the same response in the same session is answered from the
    /// journal, and goes on where it was. Without a name it has one of its own, which is printed
    #[arg(long, value_name = "NAME", requires = "journal")]
    pub(crate) session: Option<String>,
    /// Go on with what the session has left open, and read no input
    #[arg(long, requires = "session", conflicts_with = "file")]
    pub(crate) resume: bool,
}
