//! Reads files.

use super::{Workspace, name::Name};
use crate::WorkspaceError;
use cap_std::fs::File;
use std::{
    io::{self, Read as _},
    path::Path,
};

/// The largest file that is read, in bytes: 8 MiB. For a larger one the error is [`WorkspaceError::TooLarge`].
pub const READ_BYTES_MAX: u64 = 8 << 20;

impl Workspace {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// [`WorkspaceError`]: `Escape`, `NotFound`, `NotUtf8`, `TooLarge` over [`READ_BYTES_MAX`], `NotAFile` for
    /// directories and (without waiting) for pipes, devices and sockets, and errors of the operating system.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<String, WorkspaceError> {
        self.read_text(&self.name(path.as_ref())?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// As [`read`](Self::read), without `NotUtf8`.
    pub fn read_bytes(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, WorkspaceError> {
        self.read_named(&self.name(path.as_ref())?)
    }

    /// Whether the path exists. A link that leads to nothing does not count.
    ///
    /// # Errors
    /// [`WorkspaceError`]: `Escape`, and errors of the operating system when it cannot decide, for example because of
    /// a loop of links.
    pub fn exists(&self, path: impl AsRef<Path>) -> Result<bool, WorkspaceError> {
        let name = self.name(path.as_ref())?;
        match self.dir().metadata(&name.inside) {
            Ok(_) => Ok(true),
            Err(error) if is_absence(&error) => Ok(false),
            Err(error) => Err(self.io_error(&name, error)),
        }
    }

    pub(super) fn read_text(&self, name: &Name) -> Result<String, WorkspaceError> {
        String::from_utf8(self.read_named(name)?).map_err(|error| WorkspaceError::NotUtf8 {
            path: name.requested(),
            position: error.utf8_error().valid_up_to(),
        })
    }

    fn read_named(&self, name: &Name) -> Result<Vec<u8>, WorkspaceError> {
        let (file, metadata) = self.open_file(name)?;
        let bytes = read_bounded(file, metadata.len()).map_err(|error| self.io_error(name, error))?;
        bytes.map_err(|size| WorkspaceError::TooLarge {
            path: name.requested(),
            size,
            size_max: READ_BYTES_MAX,
        })
    }
}

/// The content, or its size if that is over the bound. A file can grow while it is read, and some report a size of
/// 0 although they have content, so the bound applies to the bytes read as well as to the reported size.
fn read_bounded(file: File, size: u64) -> io::Result<Result<Vec<u8>, u64>> {
    if size > READ_BYTES_MAX {
        return Ok(Err(size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    Ok(if read > READ_BYTES_MAX { Err(read) } else { Ok(bytes) })
}

/// Whether the error says that the path does not exist. A path that goes through a file does not exist either.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
