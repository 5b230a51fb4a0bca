//! The file of `--continue`: whole episodes in the order of the input, written by one program at a time.

use crate::{
    error::Error,
    event_file::{ProtectedFile, lock::private},
    identity::Identity,
    output_file::failed,
};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

/// A file of results, held until it is dropped.
#[derive(Debug)]
pub(super) struct ResultsFile {
    path: PathBuf,
    /// Its lock ends when it is closed. The file is never renamed, so it is its own lock.
    file: File,
    /// The length of what is whole.
    bytes: u64,
}

impl ResultsFile {
    /// Opens the file, readable by its owner only if it is new, and changes nothing in it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the path leads to a protected file or to no regular one, or if another program writes it;
    /// [`Error::Write`] if it cannot be opened.
    pub(super) fn open(path: &Path, protected: &[ProtectedFile]) -> Result<Self, Error> {
        let known = Identity::of_path(path);
        if let Some(file) = protected.iter().find(|file| Some(&file.identity) == known.as_ref()) {
            return Err(file.refusal("--continue ", path));
        }
        // Asked before it is opened: opening a pipe waits for its reader.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(refusal(
                path,
                "it is no regular file, so nothing in it could be kept: name another file",
            ));
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        let file = options.open(path).map_err(|error| failed(path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), file, bytes: 0 }),
            Err(TryLockError::WouldBlock) => {
                Err(refusal(path, "another program writes it: wait for its end, or name another file"))
            }
            Err(TryLockError::Error(error)) => Err(failed(path, error)),
        }
    }

    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds, to be read from its beginning.
    pub(super) fn reader(&self) -> &File {
        &self.file
    }

    /// Keeps so many bytes, cuts off the rest, and goes on behind them.
    pub(super) fn keep(&mut self, bytes: u64) -> Result<(), Error> {
        let kept = self.file.set_len(bytes).and_then(|()| self.file.seek(SeekFrom::Start(bytes)));
        self.bytes = kept.map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Appends the lines of a whole episode. If that fails half-way, what was written of them is cut off.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match self.file.write_all(lines) {
            Ok(()) => {
                self.bytes += lines.len() as u64;
                Ok(())
            }
            Err(error) => {
                // If this fails too, the next run cuts it off.
                let _ = self.file.set_len(self.bytes);
                Err(error)
            }
        }
    }

    /// The error of a write.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        failed(&self.path, error)
    }

    /// The error for a file that does not fit.
    pub(super) fn refusal(&self, why: &str) -> Error {
        refusal(&self.path, why)
    }
}

fn refusal(path: &Path, why: &str) -> Error {
    Error::Usage(format!("--continue {}: {why}", path.display()))
}
