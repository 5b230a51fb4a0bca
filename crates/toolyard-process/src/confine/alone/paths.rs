//! What may be written, around what is kept.
//!
//! ```text
//!   a path to write ─┬─ is kept ────────────────► to read
//!                    ├─ holds something kept ───► to read, and each path in it likewise
//!                    └─ neither ────────────────► to write, with all below it
//! ```
//!
//! Landlock takes nothing away within what it gives. So in a directory that holds something kept nothing is made, renamed or
//! removed; the files in it are written in place, and the directories in it as they were granted.

use super::super::{Layout, is_same};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use std::{
    ffi::OsString,
    fs, io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    path::{Path, PathBuf},
};

/// The most paths that are given around what is kept.
const PATHS_MAX: usize = 1 << 14;

/// Gives paths, each to a function with whether it may be written.
pub(super) struct Given<'a, F> {
    kept: Vec<PathBuf>,
    left: usize,
    give: &'a mut F,
}

impl<'a, F> Given<'a, F>
where
    F: FnMut(BorrowedFd<'_>, bool) -> io::Result<()>,
{
    /// Gives all that a layout grants by these handles.
    pub(super) fn all(layout: &Layout, handles: &[impl AsFd], give: &'a mut F) -> io::Result<()> {
        let granted = || layout.grants.iter().zip(handles);
        let mut read_only = Vec::new();
        for (grant, handle) in granted() {
            if !is_same(handle.as_fd(), &grant.at) {
                let what = format!("'{}' has become something else since it was granted", grant.at.display());
                return Err(io::Error::other(what));
            }
            if !grant.is_writable {
                read_only.push(place(handle.as_fd())?);
            }
        }
        let kept: Vec<PathBuf> = layout.kept.iter().flat_map(|path| places(path)).collect();
        for (grant, handle) in granted() {
            let at = place(handle.as_fd())?;
            // What is granted for reading within what is granted for writing is not written.
            let within = read_only.iter().filter(|path| **path != at && path.starts_with(&at));
            let kept = kept.iter().chain(within).cloned().collect();
            let mut given = Given { kept, left: PATHS_MAX, give };
            if grant.is_writable {
                given.writable(handle.as_fd(), &at)?;
            } else {
                (given.give)(handle.as_fd(), false)?;
            }
        }
        Ok(())
    }

    fn writable(&mut self, handle: BorrowedFd<'_>, at: &Path) -> io::Result<()> {
        self.left = self.left.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!(
                "what is kept from being written lies beside more than {PATHS_MAX} paths: grant the directories to write"
            ))
        })?;
        if self.kept.iter().any(|kept| at.starts_with(kept)) {
            return (self.give)(handle, false);
        }
        if !self.kept.iter().any(|kept| kept.starts_with(at)) {
            return (self.give)(handle, true);
        }
        (self.give)(handle, false)?;
        for name in names(handle)? {
            // A link is a part of its directory; what it leads to is given by its own name. Others may remove a file meanwhile.
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let Ok(below) = openat(handle, &name, flags, Mode::empty()) else { continue };
            if !FileType::from_raw_mode(fstat(&below)?.st_mode).is_symlink() {
                self.writable(below.as_fd(), &at.join(&name))?;
            }
        }
        Ok(())
    }
}

/// The names in a directory.
fn names(directory: BorrowedFd<'_>) -> io::Result<Vec<OsString>> {
    // By its handle, whatever its name leads to by now.
    let entries = fs::read_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))?;
    entries.map(|entry| Ok(entry?.file_name())).collect()
}

/// Where an open path lies.
fn place(handle: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

/// Where a path lies that exists, and where its last part lies if that is a link.
fn places(path: &Path) -> impl Iterator<Item = PathBuf> {
    let exists = statat(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let own = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let found = if exists { [own(), path.canonicalize().ok()] } else { [None, None] };
    found.into_iter().flatten()
}
