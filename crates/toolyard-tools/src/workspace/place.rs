//! The target of a write: a directory handle, and a leaf in it that is not a link.

use super::{Workspace, name::Name, nearby::or_root, open::require_file};
use crate::WorkspaceError;
use cap_std::fs::{Dir, Metadata};
use std::{
    ffi::OsString,
    io,
    path::{Component, Path, PathBuf},
};

/// The most links that are followed from the last part of a path, as many as Linux follows.
const LINKS_MAX: usize = 40;

/// A leaf in an open directory, which stays the same directory even if the names above it change.
pub(super) struct Place {
    pub(super) parent: Dir,
    pub(super) leaf: OsString,
    /// The regular file that exists there now.
    pub(super) existing: Option<Metadata>,
}

impl Workspace {
    /// Finds the place for a write to `name`, and creates missing directories on the way.
    ///
    /// Links at the end are followed here, one by one, because a rename does not follow them: it would replace the
    /// link by a file.
    pub(super) fn place(&self, name: &Name) -> Result<Place, WorkspaceError> {
        if name.wants_directory() {
            return Err(name.bad("it names a directory, not a file"));
        }
        let mut path = name.inside.clone();
        for _ in 0..LINKS_MAX {
            let (parent_path, leaf) = split(&path).ok_or_else(|| self.no_leaf(name, &path))?;
            let parent = self.open_or_create(name, parent_path)?;
            let Some(metadata) = metadata_of(&parent, &leaf).map_err(|error| self.io_error(name, error))?
            else {
                return Ok(Place { parent, leaf, existing: None });
            };
            if !metadata.is_symlink() {
                require_file(name, &metadata)?;
                return Ok(Place { parent, leaf, existing: Some(metadata) });
            }
            let target = parent.read_link(&leaf).map_err(|error| self.io_error(name, error))?;
            path = parent_path.join(target);
        }
        Err(name.bad("too many levels of symbolic links"))
    }

    /// The error for a path that ends in `.` or `..`, which is a directory unless it lies outside.
    fn no_leaf(&self, name: &Name, path: &Path) -> WorkspaceError {
        match self.dir().metadata(path) {
            Err(error) => self.io_error(name, error),
            Ok(_) => WorkspaceError::NotAFile { path: name.requested(), is: "a directory" },
        }
    }

    fn open_or_create(&self, name: &Name, path: &Path) -> Result<Dir, WorkspaceError> {
        match self.dir().open_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.create(name, path),
            opened => opened.map_err(|error| self.io_error(name, error)),
        }
    }

    fn create(&self, name: &Name, path: &Path) -> Result<Dir, WorkspaceError> {
        if let Some(before) = to_last_parent(path) {
            // A directory that the path leaves again by `..` must not be created: it was neither asked for nor granted.
            self.dir().open_dir(before).map_err(|error| self.io_error(name, error))?;
        }
        let created = self.dir().create_dir_all(path);
        match created.and_then(|()| self.dir().open_dir(path)) {
            // One of the directories' names belongs to a file, or to a link to nothing.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(WorkspaceError::NotADirectory { path: name.requested() })
            }
            opened => opened.map_err(|error| self.io_error(name, error)),
        }
    }
}

/// The path of the parent, and the last part. `None` if the last part is `.` or `..`, which is a directory.
pub(super) fn split(path: &Path) -> Option<(&Path, OsString)> {
    let leaf = path.file_name()?.to_owned();
    Some((or_root(path.parent()?), leaf))
}

/// The path as far as its last `..`.
fn to_last_parent(path: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let at = parts.iter().rposition(|part| *part == Component::ParentDir)?;
    Some(parts[..=at].iter().collect())
}

/// The metadata of this name, without following a link; `None` if it does not exist.
pub(super) fn metadata_of(parent: &Dir, leaf: &OsString) -> io::Result<Option<Metadata>> {
    match parent.symlink_metadata(leaf) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
