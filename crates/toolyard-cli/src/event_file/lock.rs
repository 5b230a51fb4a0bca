//! The lock of a log: one program at a time writes it.

use super::{failed, parts::with_suffix};
use crate::error::Error;
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
};

/// A lock beside the log, in a file of its own: the log is renamed when it is full, and a lock would go with it. The
/// file stays when the program ends, because removing it could let two programs hold one each.
#[derive(Debug)]
pub(super) struct WriterLock {
    /// Its lock ends when it is closed.
    _file: File,
}

impl WriterLock {
    /// Takes the lock of this log.
    ///
    /// # Errors
    /// [`Error::Usage`], which names the program that holds it; [`Error::Write`] if it cannot be taken.
    pub(super) fn take(log: &Path) -> Result<Self, Error> {
        let path = with_suffix(log, "lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        let mut file = options.open(&path).map_err(|error| failed(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(log, &mut file)),
            Err(TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
        sign(&mut file).map_err(|error| failed(&path, error))?;
        Ok(Self { _file: file })
    }
}

/// Readable and writable by its owner only, where the system has that.
pub(crate) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = options;
}

/// Writes which process holds the lock.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn held(log: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    // Where locks also keep readers away, the holder stays unnamed.
    let holder = file.take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse::<u32>().ok());
    let who = holder.map_or_else(|| "another program".to_owned(), |pid| format!("process {pid}"));
    Error::Usage(format!(
        "--events {}: {who} writes this file; give each program its own, for example with {{pid}} in the name",
        log.display()
    ))
}
