//! Lists a directory.

use super::{Workspace, name::Name};
use crate::{WorkspaceError, one_line::OneLine};
use cap_std::fs::{DirEntry, FileType};
use serde::Serialize;
use std::{collections::BTreeMap, ffi::OsString, io, path::Path};

/// The most entries of one listing: the first by name. The rest is counted.
pub const LIST_ENTRIES_MAX: usize = 1_000;

/// The contents of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The entries, sorted by name, at most [`LIST_ENTRIES_MAX`].
    pub entries: Vec<Entry>,
    /// How many more there are.
    pub left_out: usize,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Entry {
    /// The name, with replacement characters for bytes that are not UTF-8.
    pub name: String,
    /// The kind of the entry.
    pub kind: EntryKind,
    /// The size of a file in bytes; `None` for other kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// The kind of an entry in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, wherever it leads.
    Symlink,
    /// A pipe, a device or a socket.
    Special,
}

impl Workspace {
    /// Lists the directory `path`, sorted by name. `.` is the root. Memory is bounded; a directory with more than
    /// [`LIST_ENTRIES_MAX`] names is still walked to its end, to count them.
    ///
    /// # Errors
    /// [`WorkspaceError`]: `Escape`, `NotFound`, `NotADirectory` and errors of the operating system.
    pub fn list(&self, path: impl AsRef<Path>) -> Result<Listing, WorkspaceError> {
        let name = self.name(path.as_ref())?;
        self.list_bounded(&name, LIST_ENTRIES_MAX).map_err(|error| self.io_error(&name, error))
    }

    pub(super) fn list_bounded(&self, name: &Name, entries_max: usize) -> io::Result<Listing> {
        let (kept, left_out) = first_by_name(self.dir().read_dir(&name.inside)?, entries_max)?;
        let entries = kept.iter().map(|(name, entry)| Entry::of(name, entry)).collect();
        Ok(Listing { entries, left_out })
    }
}

impl Entry {
    fn of(name: &OsString, entry: &DirEntry) -> Self {
        let kind = EntryKind::of(entry);
        let metadata = (kind == EntryKind::File).then(|| entry.metadata().ok());
        Self {
            name: name.to_string_lossy().into_owned(),
            kind,
            size: metadata.flatten().map(|metadata| metadata.len()),
        }
    }
}

impl EntryKind {
    /// The kind; `Special` if it cannot be determined, for example because the entry was just removed.
    fn of(entry: &DirEntry) -> Self {
        entry.file_type().map_or(Self::Special, Self::of_type)
    }

    fn of_type(file_type: FileType) -> Self {
        match file_type {
            it if it.is_file() => Self::File,
            it if it.is_dir() => Self::Directory,
            it if it.is_symlink() => Self::Symlink,
            _ => Self::Special,
        }
    }

    /// The sign that follows a name of this kind in a text: `/` for a directory, `@` for a link, `|` for a special
    /// file.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::File => "",
            Self::Directory => "/",
            Self::Symlink => "@",
            Self::Special => "|",
        }
    }
}

/// An entry of a directory; in tests also an invented one.
pub(super) trait Named {
    fn name(&self) -> OsString;
}

impl Named for DirEntry {
    fn name(&self) -> OsString {
        self.file_name()
    }
}

/// The first `most` entries by name, and the number of others. Keeps no more than `most` at a time, because a
/// directory may hold millions.
pub(super) fn first_by_name<E: Named>(
    entries: impl Iterator<Item = io::Result<E>>,
    most: usize,
) -> io::Result<(BTreeMap<OsString, E>, usize)> {
    let mut kept = BTreeMap::new();
    let mut left_out = 0;
    for entry in entries {
        let entry = entry?;
        kept.insert(entry.name(), entry);
        if kept.len() > most {
            kept.pop_last();
            left_out += 1;
        }
    }
    Ok((kept, left_out))
}

/// The entry's name, on one line, and the sign of its kind.
pub(super) fn marked(entry: &DirEntry) -> String {
    let name = entry.file_name();
    format!("{}{}", OneLine(&name.to_string_lossy()), EntryKind::of(entry).sign())
}
