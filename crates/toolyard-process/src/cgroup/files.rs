//! The files of a group.

use rustix::{
    fs::{Dir, FlockOperation, Mode, OFlags, StatFs, flock, fstat, fstatfs, open, openat, statat},
    io::Errno,
};
use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::OwnedFd,
    path::Path,
};

/// What says that a file system is that of cgroup v2: `CGROUP2_SUPER_MAGIC`.
const CGROUP2: u64 = 0x6367_7270;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The directory of a group.
#[derive(Debug)]
pub(super) struct Directory(OwnedFd);

impl Directory {
    /// The directory at a path.
    ///
    /// # Errors
    /// Also when it is none of cgroup v2.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = open(path, DIRECTORY, Mode::empty())?;
        match is_of_groups(&fstatfs(&handle)?) {
            true => Ok(Self(handle)),
            false => Err(super::lacking("does not lie in a cgroup2 file system".to_owned())),
        }
    }

    /// The directory of this name in it.
    pub(super) fn at(&self, name: &str) -> io::Result<Self> {
        Ok(Self(openat(&self.0, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?))
    }

    /// The names of what is in it.
    pub(super) fn names(&self) -> io::Result<Vec<String>> {
        let entries = Dir::read_from(&self.0)?.filter_map(Result::ok);
        Ok(entries.filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned())).collect())
    }

    pub(super) fn handle(&self) -> &OwnedFd {
        &self.0
    }

    pub(super) fn read(&self, file: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(file, OFlags::RDONLY)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// The number after a key in a file of such lines.
    pub(super) fn number(&self, file: &str, key: &str) -> io::Result<u64> {
        let text = self.read(file)?;
        number(&text, key).ok_or_else(|| io::Error::other(format!("{file} says nothing of {key}")))
    }

    pub(super) fn write(&self, file: &str, text: &str) -> io::Result<()> {
        self.file(file, OFlags::WRONLY)?.write_all(text.as_bytes())
    }

    pub(super) fn has(&self, file: &str) -> bool {
        statat(&self.0, file, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    pub(super) fn file(&self, file: &str, flags: OFlags) -> io::Result<File> {
        Ok(openat(&self.0, file, flags | OFlags::CLOEXEC, Mode::empty())?.into())
    }

    /// Marks the group as in use for as long as this is open; `false` if it is already. The kernel takes the mark away
    /// from a process that dies.
    pub(super) fn lock(&self) -> bool {
        flock(&self.0, FlockOperation::NonBlockingLockExclusive).is_ok()
    }

    /// Whether this is what has that name.
    pub(super) fn is(&self, parent: &Self, name: &str) -> rustix::io::Result<bool> {
        match statat(&parent.0, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
            Ok(named) => Ok(named.st_ino == fstat(&self.0)?.st_ino),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn is_of_groups(system: &StatFs) -> bool {
    u64::try_from(system.f_type) == Ok(CGROUP2)
}

/// The number after a key.
pub(super) fn number(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    value?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_whole_key() {
        let text = "oom 1\noom_kill 2\noom_group_kill 3\n";
        assert_eq!([number(text, "oom"), number(text, "oom_kill")], [Some(1), Some(2)]);
        assert_eq!([number(text, "kill"), number("max x\n", "max")], [None, None]);
    }
}
