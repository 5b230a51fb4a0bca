//! Writes whole files.

use super::{Workspace, name::Name, place::Place, temp::TempFile};
use crate::WorkspaceError;
use std::{io, path::Path};

/// The most bytes that one operation writes: 8 MiB. For more the error is [`WorkspaceError::TooLarge`], and
/// nothing is written.
pub const WRITE_BYTES_MAX: u64 = 8 << 20;

impl Workspace {
    /// Writes a file, new or in place of an old one.
    ///
    /// Missing directories are created. The write is atomic: the content goes into a temporary file beside the target,
    /// which is then renamed over it, so that a reader sees either the old content or the new one, and a failure
    /// leaves the old one. The permissions of an old file are kept; its owner and its hard links are not. If `path`
    /// ends in a symbolic link, the file it leads to is written and the link stays. The file is not synced: the
    /// content survives the end of this process, but not necessarily a power failure.
    ///
    /// # Errors
    /// [`WorkspaceError`]: `Escape`, also for a link that leads out; `TooLarge` over [`WRITE_BYTES_MAX`]; `NotAFile`
    /// for a directory or a special file; `ReadOnly`; `NotADirectory`; and errors of the operating system. No
    /// temporary file is left, unless the process is killed.
    pub fn write(&self, path: impl AsRef<Path>, text: impl AsRef<str>) -> Result<(), WorkspaceError> {
        self.write_bytes(path, text.as_ref())
    }

    /// Writes bytes; see [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_bytes(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), WorkspaceError> {
        self.write_named(&self.name(path.as_ref())?, bytes.as_ref())
    }

    pub(super) fn write_named(&self, name: &Name, bytes: &[u8]) -> Result<(), WorkspaceError> {
        require_size(name, bytes)?;
        let place = self.place(name)?;
        self.require_unguarded(name, &place)?;
        require_writable(name, &place)?;
        replace(&place, bytes).map_err(|error| self.io_error(name, error))
    }
}

fn replace(place: &Place, bytes: &[u8]) -> io::Result<()> {
    // Until the old file's permissions are set, users whom those keep out must not be able to read the new one.
    let mut temp = TempFile::create(&place.parent, place.existing.is_some())?;
    temp.fill(bytes)?;
    if let Some(existing) = &place.existing {
        temp.set_permissions(existing.permissions())?;
    }
    temp.rename_to(&place.leaf)
}

pub(super) fn require_size(name: &Name, bytes: &[u8]) -> Result<(), WorkspaceError> {
    let size = bytes.len() as u64;
    if size <= WRITE_BYTES_MAX {
        return Ok(());
    }
    Err(WorkspaceError::TooLarge { path: name.requested(), size, size_max: WRITE_BYTES_MAX })
}

/// Fails if the existing file is read-only, which a rename over it would not check.
pub(super) fn require_writable(name: &Name, place: &Place) -> Result<(), WorkspaceError> {
    match &place.existing {
        Some(existing) if existing.permissions().readonly() => {
            Err(WorkspaceError::ReadOnly { path: name.requested() })
        }
        Some(_) | None => Ok(()),
    }
}
