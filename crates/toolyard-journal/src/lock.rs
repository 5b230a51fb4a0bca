//! The lock of a journal: one process at a time writes it (JR-4).
//!
//! The lock is one of the operating system's, on a file beside the journal, and ends with the process that has it. The file
//! stays: removing it could let two processes hold one each.

use crate::{
    error::{Holder, JournalError},
    file::{beside, private, unlinked},
    stamp::{millis, time},
};
use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::Path,
    thread::park_timeout,
    time::{Duration, SystemTime},
};

/// How often a lock that another process has is tried.
const EVERY: Duration = Duration::from_millis(20);

/// Held as long as this lives.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of this journal, and waits for it at most this long. Programs that a process has started do not
    /// inherit it: they may still run when it is free.
    pub(crate) fn take(journal: &Path, wait: Duration) -> Result<Self, JournalError> {
        let path = beside(journal, "lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        unlinked(&mut options);
        let mut file = options.open(&path).map_err(JournalError::io(&path, "opening the lock"))?;
        let mut left = wait;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(JournalError::io(&path, "locking")(error)),
                Err(TryLockError::WouldBlock) if left.is_zero() => {
                    return Err(JournalError::Held { path: journal.to_owned(), holder: holder(&mut file) });
                }
                Err(TryLockError::WouldBlock) => {
                    let pause = left.min(EVERY);
                    park_timeout(pause);
                    left -= pause;
                }
            }
        }
        sign(&mut file).map_err(JournalError::io(&path, "signing the lock"))?;
        Ok(Self { _file: file })
    }
}

/// Writes which process holds the lock, and since when.
fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{} {}", std::process::id(), millis(SystemTime::now()))
}

/// Reads who holds it.
fn holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.take(64).read_to_string(&mut text));
    let (pid, since) = text.trim().split_once(' ').unwrap_or_default();
    match (read, pid.parse(), since.parse()) {
        (Ok(_), Ok(pid), Ok(since)) => Holder::Process { pid, since: time(since) },
        _ => Holder::Unknown,
    }
}
