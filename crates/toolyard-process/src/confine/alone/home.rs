//! The directory of a program's own, for its temporary files.
//!
//! It is locked as long as its helper lives. One that nobody has locked was left by a helper that was killed, and whoever
//! comes next removes it.

use super::named;
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, fstat, lstat, open},
    process::{geteuid, getpid},
};
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    },
    path::{Path, PathBuf},
};

/// What the name of each begins with.
const PREFIX: &str = "toolyard-tmp-";

/// How many names are tried. One may be taken by a process of another container that has the same number.
const NAMES: usize = 64;

/// A directory that this process has made, and removes when it is dropped, with all that is in it.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    lock: OwnedFd,
}

impl Home {
    /// Makes one in `place`.
    pub(super) fn make(place: &Path) -> io::Result<Self> {
        remove_left(place);
        let failed = |error| named(&format!("make a directory in '{}'", place.display()), error);
        for number in 0..NAMES {
            let path = place.join(format!("{PREFIX}{}-{number}", getpid().as_raw_pid()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made.map_err(failed)?,
            }
            // Somebody may have taken it for one that is left between the two, and removed it.
            if let Some(lock) = lock(&path) {
                return Ok(Self { path, lock });
            }
        }
        Err(failed(io::Error::other("no name is free in it")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Another handle to it.
    pub(super) fn handle(&self) -> io::Result<OwnedFd> {
        self.lock.try_clone()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes those of this user in this place that nobody has locked.
fn remove_left(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    let is_one = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
    for entry in entries.flatten().filter(is_one) {
        if let Some(_lock) = lock(&entry.path()) {
            remove(&entry.path());
        }
    }
}

/// Locks a directory of this user; `None` if it is none, has gone, or is locked.
fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = open(path, flags, Mode::empty()).ok()?;
    flock(&handle, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (locked, named) = (fstat(&handle).ok()?, lstat(path).ok()?);
    let is_ours = locked.st_uid == geteuid().as_raw();
    (is_ours && (locked.st_dev, locked.st_ino) == (named.st_dev, named.st_ino)).then_some(handle)
}

/// Removes a directory with all that is in it, also what cannot be entered as it was left.
fn remove(path: &Path) {
    if fs::remove_dir_all(path).is_err() {
        let _ = open_up(path);
        let _ = fs::remove_dir_all(path);
    }
}

fn open_up(directory: &Path) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)?.flatten() {
        // Not where a link leads.
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-7: what a helper left that was killed is removed by the next, and what is in use is not.
    #[test]
    fn what_is_left_is_removed_by_the_next() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join(format!("{PREFIX}1-0"));
        fs::create_dir_all(left.join("a/b")).unwrap();
        fs::set_permissions(left.join("a"), Permissions::from_mode(0o000)).unwrap();
        fs::create_dir(place.path().join("other")).unwrap();
        let first = Home::make(place.path()).unwrap();
        let second = Home::make(place.path()).unwrap();
        assert!(!left.exists() && first.path().exists() && second.path().exists());
        assert_ne!(first.path(), second.path());
        drop((first, second));
        let names: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["other"]);
        assert!(Home::make(&place.path().join("none")).is_err());
    }
}
