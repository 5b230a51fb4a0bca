//! Whether the files of a journal are still those that were opened (JR-12).
//!
//! A file that is removed, renamed or replaced can be written on Unix as long as somebody has it open; what is written is
//! found by nobody. Looking at a file takes a microsecond or two, a tenth of the smallest group of
//! [`Durability::Process`](crate::Durability::Process) for both: so it is done at most once a millisecond.

use crate::error::JournalError;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The file and SQLite's log of it, as they were when they were opened.
pub(crate) struct Files {
    /// When they were looked at last.
    looked_ms: i64,
    files: [(PathBuf, Identity); 2],
}

impl Files {
    /// Those of a journal to which something was written.
    pub(crate) fn of(journal: &Path) -> Result<Self, JournalError> {
        let mut log = journal.as_os_str().to_owned();
        log.push("-wal");
        let known = |path: PathBuf| match Identity::of(&path) {
            Ok(identity) => Ok((path, identity)),
            Err(error) => Err(JournalError::io(&path, "looking which file it is")(error)),
        };
        Ok(Self { looked_ms: 0, files: [known(journal.to_owned())?, known(log.into())?] })
    }

    /// One that is not there any more, or is another one, if this is another millisecond than that of the last look. Of one
    /// that cannot be looked at nothing is known.
    pub(crate) fn gone(&mut self, now_ms: i64) -> Option<&Path> {
        if std::mem::replace(&mut self.looked_ms, now_ms) == now_ms {
            return None;
        }
        let is_gone = |(path, identity): &&(PathBuf, Identity)| match Identity::of(path) {
            Ok(now) => now != *identity,
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        };
        self.files.iter().find(is_gone).map(|(path, _)| path.as_path())
    }
}

/// Which file a path leads to. Looking at it opens nothing, so that no lock of SQLite's is dropped (JR-4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
}

impl Identity {
    #[cfg(unix)]
    fn of(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::metadata(path)?;
        Ok(Self { device_and_inode: (found.dev(), found.ino()) })
    }

    /// Elsewhere, as on Windows, nobody can remove or rename a file that SQLite has open.
    #[cfg(not(unix))]
    fn of(_path: &Path) -> io::Result<Self> {
        Ok(Self {})
    }
}
