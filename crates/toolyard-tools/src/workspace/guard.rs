//! Files that no operation writes: what governs an agent is not written by it (SB-11).
//!
//! A guarded file is known by what it is, not by how it is called: a link to it, or another name of it, is guarded too.

use super::{Workspace, name::Name, place::Place};
use crate::WorkspaceError;
use cap_std::fs::{Dir, Metadata};
use std::{
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    sync::PoisonError,
};

/// A file that no operation writes.
#[derive(Debug)]
pub(super) struct Guarded {
    /// Where it stands, or will.
    directory: PathBuf,
    name: OsString,
}

impl Workspace {
    /// Guards a file: from now on no operation of this workspace or of a clone of it writes or deletes it, nor the older
    /// parts of a log beside it, `FILE.1`, `FILE.2` and so on. For what governs a call, such as the configuration in
    /// force, and for its records, which may lie in the workspace too (SB-11). A path that does not exist is guarded all
    /// the same; one outside the workspace changes nothing.
    ///
    /// # Examples
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let workspace = toolyard_tools::Workspace::open(dir.path())?;
    /// workspace.guard(dir.path().join("toolyard.toml"));
    /// let error = workspace.write("toolyard.toml", "").unwrap_err();
    /// assert_eq!(error.to_string(), "'toolyard.toml' governs what tools may do, and is not written by them");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn guard(&self, file: impl AsRef<Path>) {
        let file = std::path::absolute(file.as_ref()).unwrap_or_else(|_| file.as_ref().to_owned());
        // What is guarded is the file that the name leads to by now.
        let file = file.canonicalize().unwrap_or(file);
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else { return };
        let guarded = Guarded { directory: directory.to_owned(), name: name.to_owned() };
        self.inner.guarded.write().unwrap_or_else(PoisonError::into_inner).push(guarded);
    }

    /// The files that are guarded, by absolute path, for a sandbox that keeps them from being written as well.
    pub fn guarded(&self) -> Vec<PathBuf> {
        let guarded = self.inner.guarded.read().unwrap_or_else(PoisonError::into_inner);
        guarded.iter().map(|guarded| guarded.directory.join(&guarded.name)).collect()
    }

    /// Fails if this place is that of a guarded file.
    pub(super) fn require_unguarded(&self, name: &Name, place: &Place) -> Result<(), WorkspaceError> {
        self.require_unguarded_leaf(name, &place.parent, &place.leaf, place.existing.as_ref())
    }

    /// Fails if this name in this directory, where this file stands, is that of a guarded one.
    pub(super) fn require_unguarded_leaf(
        &self,
        name: &Name,
        parent: &Dir,
        leaf: &OsStr,
        existing: Option<&Metadata>,
    ) -> Result<(), WorkspaceError> {
        let guarded = self.inner.guarded.read().unwrap_or_else(PoisonError::into_inner);
        let is_guarded = |guarded: &Guarded| {
            existing.is_some_and(|existing| guarded.is(existing)) || guarded.is_at(parent, leaf)
        };
        match guarded.iter().any(is_guarded) {
            true => Err(WorkspaceError::Guarded { path: name.requested() }),
            false => Ok(()),
        }
    }
}

impl Guarded {
    /// Whether this file is the guarded one.
    fn is(&self, existing: &Metadata) -> bool {
        fs::metadata(self.directory.join(&self.name)).is_ok_and(|guarded| is_same(&guarded, existing))
    }

    /// Whether this name is the guarded file's, which may not exist, or that of an older part of it.
    fn is_at(&self, parent: &Dir, leaf: &OsStr) -> bool {
        (leaf == self.name || is_older_part(&self.name, leaf)) && self.is_in(parent)
    }

    fn is_in(&self, parent: &Dir) -> bool {
        let directory = fs::metadata(&self.directory);
        directory
            .is_ok_and(|directory| parent.dir_metadata().is_ok_and(|parent| is_same(&directory, &parent)))
    }
}

/// Whether this is the name of a file with a number behind it.
fn is_older_part(of: &OsStr, leaf: &OsStr) -> bool {
    let number = leaf.as_encoded_bytes().strip_prefix(of.as_encoded_bytes());
    let number = number.and_then(|rest| rest.strip_prefix(b"."));
    number.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}

#[cfg(unix)]
fn is_same(one: &fs::Metadata, other: &Metadata) -> bool {
    use cap_std::fs::MetadataExt as _;
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// Elsewhere files have no number that std would tell: a guarded file is known by its own name, in whatever directory.
#[cfg(not(unix))]
fn is_same(one: &fs::Metadata, other: &Metadata) -> bool {
    one.is_dir() && other.is_dir()
}
