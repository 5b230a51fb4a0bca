//! Mounts a part of the host within a new root.

use super::user::named;
use rustix::{
    fs::{Mode, OFlags, StatVfsMountFlags, fstat, open, statvfs},
    mount::{MountFlags, mount_bind, mount_bind_recursive, mount_remount},
};
use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::ffi::OsStringExt as _,
    },
    path::{Path, PathBuf},
};

/// A part of the host.
pub(super) struct Source {
    handle: OwnedFd,
    is_directory: bool,
}

impl Source {
    /// What stands at a path; `None` if nothing does.
    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        match open_path(path) {
            Ok(handle) => Self::of(handle).map(Some),
            // A part of the path may be a file.
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What a handle means, if its name still leads there. A mount of another namespace cannot be mounted again, which
    /// handles from before the namespace are of: so the name is opened anew, and compared.
    pub(super) fn of_handle(handle: &OwnedFd) -> io::Result<Self> {
        let path = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd()))?;
        let again = open_path(&path)?;
        let (granted, found) = (fstat(handle)?, fstat(&again)?);
        if (granted.st_dev, granted.st_ino) != (found.st_dev, found.st_ino) {
            let what = format!("'{}' has become something else since it was granted", path.display());
            return Err(io::Error::other(what));
        }
        Self::of(again)
    }

    fn of(handle: OwnedFd) -> io::Result<Self> {
        let kind = rustix::fs::FileType::from_raw_mode(fstat(&handle)?.st_mode);
        Ok(Self { handle, is_directory: kind.is_dir() })
    }

    /// Mounts it below `root`, at this path inside, with everything that is mounted below it.
    pub(super) fn bind(&self, root: &Path, at: &Path, is_writable: bool) -> io::Result<()> {
        let target = inside(root, at);
        self.make_target(&target)
            .map_err(|error| named(&format!("make '{}' inside", at.display()), error))?;
        let source = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let failed =
            |error: rustix::io::Errno| named(&format!("mount '{}' inside", at.display()), error.into());
        mount_bind_recursive(source, &target).map_err(failed)?;
        for mount in mounts_below(&target)? {
            restrict(&mount, is_writable).map_err(failed)?;
        }
        Ok(())
    }

    /// Mounts a device below `root`. A mount of a user namespace gives none, so the host's is what counts.
    pub(super) fn bind_device(&self, root: &Path, at: &Path) -> io::Result<()> {
        let target = inside(root, at);
        self.make_target(&target)?;
        let source = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        mount_bind(source, &target)
            .map_err(|error| named(&format!("mount '{}' inside", at.display()), error.into()))
    }

    fn make_target(&self, target: &Path) -> io::Result<()> {
        if self.is_directory {
            return fs::create_dir_all(target);
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        // What is there already, such as a file of a directory that was granted, is mounted over.
        if target.symlink_metadata().is_err() {
            File::create(target)?;
        }
        Ok(())
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A path inside, as it is called outside.
pub(super) fn inside(root: &Path, at: &Path) -> PathBuf {
    root.join(at.strip_prefix("/").unwrap_or(at))
}

/// Opens a path for its name alone. The last part may not be a link, nor may any other if the kernel can tell.
fn open_path(path: &Path) -> io::Result<OwnedFd> {
    Ok(open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?)
}

/// Takes away from a mount what a program must not have: set-user-id programs and devices, and writing unless that is
/// granted. What the mount had not before, a user namespace may not give it.
fn restrict(mount: &Path, is_writable: bool) -> rustix::io::Result<()> {
    let had = statvfs(mount)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV;
    for (had_flag, flag) in [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        flags.set(flag, had.contains(had_flag));
    }
    flags.set(MountFlags::RDONLY, !is_writable || had.contains(StatVfsMountFlags::RDONLY));
    mount_remount(mount, flags, "")
}

/// The mount at a path, and those below it.
fn mounts_below(path: &Path) -> io::Result<Vec<PathBuf>> {
    let all = fs::read("/proc/self/mountinfo")?;
    let at = |line: &[u8]| line.split(|byte| *byte == b' ').nth(4).map(unescaped);
    let below = all.split(|byte| *byte == b'\n').filter_map(at).filter(|mount| mount.starts_with(path));
    Ok(below.collect())
}

/// A path of `mountinfo`: white space and backslashes in it are octal numbers.
fn unescaped(text: &[u8]) -> PathBuf {
    let (mut path, mut rest) = (Vec::new(), text);
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..3).filter(|_| *first == b'\\');
        let number = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match number {
            Some(byte) => {
                path.push(byte);
                rest = &more[3..];
            }
            None => {
                path.push(*first);
                rest = more;
            }
        }
    }
    OsString::from_vec(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_mounts_are_read() {
        assert_eq!(unescaped(br"/a\040b\134c"), Path::new(r"/a b\c"));
        assert_eq!(unescaped(br"/a\9"), Path::new(r"/a\9"));
        assert_eq!(inside(Path::new("/r"), Path::new("/a/b")), Path::new("/r/a/b"));
    }
}
