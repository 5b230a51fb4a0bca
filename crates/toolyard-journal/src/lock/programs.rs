//! The lock that whatever a process has started shares with it.

use super::locked;
use crate::{
    error::{Holder, JournalError},
    file::{beside, make, unlinked},
};
use std::{
    fs::{File, OpenOptions},
    os::unix::fs::MetadataExt as _,
    path::Path,
    time::Duration,
};
use toolyard_process::{KeptOpen, keep_open};

/// How many processes are named.
const NAMED_MAX: usize = 8;

/// Takes the lock, and shares it with all that is started from now on. Nobody writes to the file: programs may have it.
pub(super) fn take(
    journal: &Path,
    left: &mut Duration,
    last: impl FnOnce() -> Holder,
) -> Result<KeptOpen, JournalError> {
    let path = beside(journal, "programs");
    make(&path)?;
    let mut options = OpenOptions::new();
    options.read(true);
    unlinked(&mut options);
    let file = options.open(&path).map_err(JournalError::io(&path, "opening the lock of programs"))?;
    if !locked(&file, left).map_err(JournalError::io(&path, "locking"))? {
        let running = processes_with(&file);
        return Err(JournalError::StillRuns { path: journal.to_owned(), last: last(), running });
    }
    keep_open(file).map_err(JournalError::io(&path, "sharing the lock with programs"))
}

/// The processes that have a file open, as far as the system says so.
fn processes_with(file: &File) -> Vec<u32> {
    let Ok(wanted) = file.metadata() else { return Vec::new() };
    let has_it = |process: &u32| {
        let open = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
        let mut open = open.filter_map(|entry| std::fs::metadata(entry.path()).ok());
        open.any(|open| (open.dev(), open.ino()) == (wanted.dev(), wanted.ino()))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    all.filter(|process| *process != std::process::id()).filter(has_it).take(NAMED_MAX).collect()
}
