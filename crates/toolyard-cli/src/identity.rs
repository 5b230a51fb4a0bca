//! The identity of a file: two names, links or descriptors of one file are equal.

use std::{fs, fs::File, path::Path};

/// A regular file, whatever its name. Devices and pipes have no identity: opening them for writing destroys nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

#[cfg(unix)]
impl Identity {
    /// The file with this name.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().and_then(|metadata| Self::from_metadata(&metadata))
    }

    /// An open file that was opened under this name.
    pub(crate) fn of_open(file: &File, _path: &Path) -> Option<Self> {
        file.metadata().ok().and_then(|metadata| Self::from_metadata(&metadata))
    }

    /// The file that standard input is redirected from.
    pub(crate) fn of_stdin() -> Option<Self> {
        use std::os::fd::AsFd;
        let stdin = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
        File::from(stdin).metadata().ok().and_then(|metadata| Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &fs::Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        metadata.is_file().then(|| Self { device_and_inode: (metadata.dev(), metadata.ino()) })
    }
}

#[cfg(not(unix))]
impl Identity {
    /// The file with this name.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let path = fs::canonicalize(path).ok()?;
        path.is_file().then_some(Self { path })
    }

    /// An open file that was opened under this name.
    pub(crate) fn of_open(_file: &File, path: &Path) -> Option<Self> {
        Self::of_path(path)
    }

    /// On this system, the file that standard input is redirected from is unknown.
    pub(crate) fn of_stdin() -> Option<Self> {
        None
    }
}
