//! The file of a journal: where it may be, and who may read it.

use crate::error::JournalError;
use std::{
    fs::OpenOptions,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

/// The file of this ending beside the journal.
pub(crate) fn beside(journal: &Path, ending: &str) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// The one path of the file that is named, be it by a link: locks are of paths, and two names must not have two.
pub(crate) fn resolved(journal: &Path) -> Result<PathBuf, JournalError> {
    let failed = || JournalError::io(journal, "looking for the place of the journal");
    if let Ok(found) = journal.canonicalize() {
        return Ok(found);
    }
    if journal.is_symlink() {
        return Err(failed()(io::Error::new(ErrorKind::NotFound, "it is a link that leads nowhere")));
    }
    let name = journal.file_name().filter(|name| *name != ":memory:");
    let name =
        name.ok_or_else(|| failed()(io::Error::new(ErrorKind::InvalidInput, "a journal is a file")))?;
    Ok(directory(journal).canonicalize().map_err(failed())?.join(name))
}

/// The directory that it is in, or will be.
fn directory(journal: &Path) -> &Path {
    match journal.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Follows no link to the file, where the system can do that.
pub(crate) fn unlinked(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    }
    #[cfg(not(unix))]
    let _ = options;
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

/// Makes the file if there is none, so that SQLite finds it with the mode that its own files then have too.
///
/// One that is there is not opened: on Unix, closing any descriptor of a file drops every lock that the process has on it,
/// those of SQLite's connections included.
pub(crate) fn make(journal: &Path) -> Result<(), JournalError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options);
    match options.open(journal) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop).map_err(JournalError::io(journal, "making the journal")),
    }
}

/// Refuses file systems whose locks and syncs are another machine's or another program's.
pub(crate) fn check_place(journal: &Path) -> Result<(), JournalError> {
    #[cfg(target_os = "linux")]
    {
        let place = if journal.exists() { journal } else { directory(journal) };
        let found = rustix::fs::statfs(place)
            .map_err(|error| JournalError::io(place, "asking for the file system")(error.into()))?;
        // The numbers have 32 bits; which type holds them differs from system to system.
        let number = found.f_type as u32;
        if let Some(kind) = refused(number) {
            return Err(JournalError::FileSystem { path: journal.to_owned(), kind });
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = journal;
    Ok(())
}

/// The name of the file system with this number, if a journal cannot be there.
#[cfg(target_os = "linux")]
fn refused(number: u32) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x6573_5546 => "FUSE",
        0x0102_1997 => "9P",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x7375_7245 => "Coda",
        0x0bd0_0bd0 => "Lustre",
        0x564c => "NCP",
        0x786f_4256 => "a folder that VirtualBox shares",
        0xbacb_acbc => "a folder that VMware shares",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// JR-4: what is another machine's, or a program's, is refused; what is local is not.
    #[test]
    fn network_file_systems_are_refused() {
        assert_eq!(refused(0x6969), Some("NFS"));
        assert_eq!(refused(0x6573_5546), Some("FUSE"));
        let (ext4, tmpfs, overlay, btrfs, xfs) = (0xef53, 0x0102_1994, 0x794c_7630, 0x9123_683e, 0x5846_5342);
        for local in [ext4, tmpfs, overlay, btrfs, xfs] {
            assert_eq!(refused(local), None);
        }
    }
}
