//! The lock of a journal: one process at a time writes it (JR-4).
//!
//! ```text
//!   FILE.lock      the process that writes ── free when that has ended, or has closed the journal
//!   FILE.programs  the same process, and all that it has started ── free when all of them have ended
//! ```
//!
//! Both are locks of the operating system's, on files beside the journal, and an opener takes them in this order. There are
//! two because programs could let go of a lock that they share: this way it is never that of the process. The files stay:
//! removing one could let two processes hold one each.

#[cfg(unix)]
mod programs;

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
    /// Let go of first: whoever has the other one finds this one free, if nothing runs any more.
    #[cfg(unix)]
    _programs: toolyard_process::KeptOpen,
    _file: File,
}

impl Lock {
    /// Takes the lock of this journal, and waits for it at most this long: for the process that has it, and for what a
    /// process that had it has started. Where programs inherit nothing (Windows), those may still run.
    pub(crate) fn take(journal: &Path, wait: Duration) -> Result<Self, JournalError> {
        let path = beside(journal, "lock");
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        unlinked(&mut options);
        let mut file = options.open(&path).map_err(JournalError::io(&path, "opening the lock"))?;
        let mut left = wait;
        if !locked(&file, &mut left).map_err(JournalError::io(&path, "locking"))? {
            return Err(JournalError::Held { path: journal.to_owned(), holder: holder(&mut file) });
        }
        #[cfg(unix)]
        let programs = programs::take(journal, &mut left, || holder(&mut file))?;
        sign(&mut file).map_err(JournalError::io(&path, "signing the lock"))?;
        Ok(Self {
            #[cfg(unix)]
            _programs: programs,
            _file: file,
        })
    }
}

/// Locks a file, unless another process has it for the time that is left to wait, which gets less.
fn locked(file: &File, left: &mut Duration) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if left.is_zero() => return Ok(false),
            Err(TryLockError::WouldBlock) => {
                let pause = EVERY.min(*left);
                park_timeout(pause);
                *left -= pause;
            }
        }
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
