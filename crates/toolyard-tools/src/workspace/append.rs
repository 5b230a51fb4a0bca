//! Appends to a file.

use super::{
    Workspace,
    name::Name,
    open::{nonblocking, require_file},
    place::Place,
    write::{require_size, require_writable},
};
use crate::WorkspaceError;
use cap_std::fs::{File, OpenOptions};
use std::{
    io::{self, Write as _},
    path::Path,
};

impl Workspace {
    /// Appends text to a file. The file and its directories are created if they are missing.
    ///
    /// Unlike [`write`](Self::write) this works in place: two concurrent appends lose nothing of each other, but a
    /// process that is killed half-way leaves part of the text. The bound applies to the text of one call, not to the
    /// resulting file.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn append(&self, path: impl AsRef<Path>, text: impl AsRef<str>) -> Result<(), WorkspaceError> {
        let name = self.name(path.as_ref())?;
        let bytes = text.as_ref().as_bytes();
        require_size(&name, bytes)?;
        let place = self.place(&name)?;
        self.require_unguarded(&name, &place)?;
        require_writable(&name, &place)?;
        let mut file = self.open_end(&name, &place)?;
        file.write_all(bytes).map_err(|error| self.io_error(&name, error))
    }

    /// Opens the place's file to append. The open is confined to the place's directory, so that a leaf that has become
    /// a link by now cannot lead out of that directory, let alone out of the workspace.
    fn open_end(&self, name: &Name, place: &Place) -> Result<File, WorkspaceError> {
        let io_error = |error| self.io_error(name, error);
        let file = open_or_create(place).map_err(io_error)?;
        require_file(name, &file.metadata().map_err(io_error)?)?;
        Ok(file)
    }
}

fn open_or_create(place: &Place) -> io::Result<File> {
    let mut options = OpenOptions::new();
    nonblocking(options.append(true).create(true));
    place.parent.open_with(&place.leaf, &options)
}
