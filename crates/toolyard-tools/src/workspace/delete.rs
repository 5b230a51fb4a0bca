//! Deletes files, links and empty directories.

use super::{
    Workspace,
    name::Name,
    place::{metadata_of, split},
};
use crate::WorkspaceError;
use cap_std::fs::Dir;
use std::{
    ffi::OsString,
    io,
    path::{Component, Path},
};

impl Workspace {
    /// Deletes a file, an empty directory, or a symbolic link itself. The target of a link is not touched.
    ///
    /// # Errors
    /// [`WorkspaceError`]: `Escape`, `Guarded`, `NotFound`, `NotEmpty`, `NotADirectory` for a file whose name ends in a slash,
    /// `BadPath` for the root and for names that end in `..`, and errors of the operating system.
    pub fn delete(&self, path: impl AsRef<Path>) -> Result<(), WorkspaceError> {
        let name = self.name(path.as_ref())?;
        let (parent_path, leaf) = split(&name.inside).ok_or_else(|| no_leaf(&name))?;
        let io_error = |error| self.io_error(&name, error);
        let parent = self.dir().open_dir(parent_path).map_err(io_error)?;
        let existing = metadata_of(&parent, &leaf).map_err(io_error)?;
        self.require_unguarded_leaf(&name, &parent, &leaf, existing.as_ref())?;
        remove(&parent, &leaf, name.wants_directory()).map_err(io_error)
    }
}

fn remove(parent: &Dir, leaf: &OsString, wants_directory: bool) -> io::Result<()> {
    let metadata = metadata_of(parent, leaf)?.ok_or(io::ErrorKind::NotFound)?;
    match metadata.is_dir() {
        true => parent.remove_dir(leaf),
        false if wants_directory => Err(io::ErrorKind::NotADirectory.into()),
        false => parent.remove_file(leaf),
    }
}

fn no_leaf(name: &Name) -> WorkspaceError {
    let mut components = name.inside.components();
    match components.all(|component| component == Component::CurDir) {
        true => name.bad("the root of the workspace cannot be deleted"),
        false => name.bad("a path to delete cannot end in '..'"),
    }
}
