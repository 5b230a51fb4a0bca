//! Why a journal cannot be opened, read or written.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// Why a journal cannot be opened, read or written. The messages say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another process has it (JR-4).
    #[error(
        "{}: {holder} has this journal; wait until that has stopped, give each program a journal of its own, or let one \
         program serve all", path.display()
    )]
    Held {
        /// The journal.
        path: PathBuf,
        /// Who has it.
        holder: Holder,
    },
    /// Nobody has it, but programs that the last one has started still run, and may change what calls that are taken up
    /// would change (JR-4).
    #[error(
        "{}: {last} has let go of this journal, but what it has started still runs{}; wait until that has ended, or end it, \
         and try again", path.display(), Numbers(running)
    )]
    StillRuns {
        /// The journal.
        path: PathBuf,
        /// Who had it last.
        last: Holder,
        /// What runs: some of the processes, as far as the system says so. A helper has its programs under it.
        running: Vec<u32>,
    },
    /// It would be where locks and syncs cannot be relied on (JR-4).
    #[error(
        "{}: a journal cannot be on {kind}, where locks and syncs cannot be relied on; put it on a local disk",
        path.display()
    )]
    FileSystem {
        /// The journal.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// The file is something else.
    #[error("{}: this file is not a journal; name another one", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of this program has made it.
    #[error("{}: its schema is version {found}, and this program knows {known}; use a newer program", path.display())]
    Newer {
        /// The journal.
        path: PathBuf,
        /// The version of its schema.
        found: i64,
        /// The version that is known here.
        known: i64,
    },
    /// The operating system says no.
    #[error("{}: {doing} fails", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What fails.
        doing: &'static str,
        /// Why.
        source: io::Error,
    },
    /// SQLite says no.
    #[error("{}: {doing} fails; 'verify' tells whether the file is damaged", path.display())]
    Sqlite {
        /// The journal.
        path: PathBuf,
        /// What fails.
        doing: &'static str,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// What is stored makes no sense.
    #[error("{}: {what}; the file is damaged, or somebody has changed it: see what 'verify' says", path.display())]
    Content {
        /// The journal.
        path: PathBuf,
        /// What makes none.
        what: String,
    },
    /// The writer has stopped with records that are not written.
    #[error("the journal is not written any more: {0}")]
    Stopped(String),
}

impl JournalError {
    pub(crate) fn io(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, doing, source }
    }

    pub(crate) fn sqlite(path: &Path, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Sqlite { path, doing, source: Box::new(source) }
    }
}

/// The numbers of processes, in brackets.
struct Numbers<'a>(&'a [u32]);

impl fmt::Display for Numbers<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        match numbers.as_slice() {
            [] => Ok(()),
            [one] => write!(f, " (process {one})"),
            more => write!(f, " (processes {})", more.join(", ")),
        }
    }
}

/// The process that has a journal, or had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Holder {
    /// A process that has said who it is.
    Process {
        /// Its number.
        pid: u32,
        /// When it opened the journal.
        since: SystemTime,
    },
    /// One that cannot be named: it is just starting, or the system lets nobody read a locked file.
    Unknown,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, since } => {
                write!(f, "process {pid}, since {},", httpdate::fmt_http_date(*since))
            }
            Self::Unknown => f.write_str("another process"),
        }
    }
}
