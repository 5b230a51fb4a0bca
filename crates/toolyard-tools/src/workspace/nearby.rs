//! Lists the names that exist near a missing file.

use super::{Workspace, list};
use crate::one_line::OneLine;
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
};

/// The most names that an error lists; the rest is counted.
pub const NEARBY_NAMES_MAX: usize = 20;

/// The most entries of a directory that are looked at for them. In a larger directory these are not the first by name.
pub const NEARBY_ENTRIES_MAX: usize = 10_000;

/// The contents of the nearest existing directory of a missing path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearby {
    /// The directory, relative to the root; `.` is the root.
    pub directory: PathBuf,
    /// Whether it is the direct parent of the missing path.
    pub is_parent: bool,
    /// The first names in it, in order; directories end in `/`, links in `@`, special files in `|`.
    /// Control and invisible characters in them are escaped.
    pub names: Vec<String>,
    /// How many more there are, as far as they were counted.
    pub left_out: usize,
    /// Whether every entry was looked at. If not, there are more than [`NEARBY_ENTRIES_MAX`].
    pub is_whole: bool,
}

impl fmt::Display for Nearby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_parent {
            true => f.write_str("the directory ")?,
            false => write!(f, "the nearest directory, '{}', ", OneLine(&self.directory.to_string_lossy()))?,
        }
        let names = self.names.join(", ");
        match (self.names.is_empty(), self.left_out) {
            (true, _) => f.write_str("is empty"),
            _ if !self.is_whole => {
                write!(f, "contains more than {NEARBY_ENTRIES_MAX} entries, among them: {names}")
            }
            (false, 0) => write!(f, "contains: {names}"),
            (false, more) => write!(f, "contains: {names}, … and {more} more"),
        }
    }
}

impl Workspace {
    /// The contents of the nearest existing directory above `inside`. `None` if it cannot be read, for example
    /// because it is a link that leads out.
    pub(super) fn nearby(&self, inside: &Path) -> Option<Nearby> {
        let parent = inside.parent()?;
        let directory = parent.ancestors().find(|dir| self.is_directory(dir))?;
        let entries = self.dir().read_dir(or_root(directory)).ok()?;
        let Found { kept, left_out, is_whole } = Found::among(entries).ok()?;
        Some(Nearby {
            is_whole,
            directory: or_root(directory).to_owned(),
            is_parent: directory == parent,
            names: kept.values().map(list::marked).collect(),
            left_out,
        })
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.dir().is_dir(or_root(path))
    }
}

/// The entries that an error names.
struct Found<E> {
    kept: BTreeMap<OsString, E>,
    left_out: usize,
    is_whole: bool,
}

impl<E: list::Named> Found<E> {
    /// Looks at the first [`NEARBY_ENTRIES_MAX`] entries, in the order of the directory.
    fn among(mut entries: impl Iterator<Item = io::Result<E>>) -> io::Result<Self> {
        let looked_at = entries.by_ref().take(NEARBY_ENTRIES_MAX);
        let (kept, left_out) = list::first_by_name(looked_at, NEARBY_NAMES_MAX)?;
        Ok(Self { kept, left_out, is_whole: entries.next().is_none() })
    }
}

/// Replaces an empty path, which no system call accepts, by `.`.
pub(super) fn or_root(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    impl list::Named for OsString {
        fn name(&self) -> OsString {
            self.clone()
        }
    }

    fn numbered(count: usize) -> impl Iterator<Item = io::Result<OsString>> {
        (0..count).rev().map(|n| Ok(format!("{n:07}").into()))
    }

    /// A directory of a million entries is looked at as far as one of ten thousand, and one entry more.
    #[test]
    fn a_large_directory_is_not_walked_to_its_end() {
        let looked_at = Cell::new(0);
        let entries = numbered(1_000_000).inspect(|_| looked_at.set(looked_at.get() + 1));
        let found = Found::among(entries).unwrap();
        assert_eq!(looked_at.get(), NEARBY_ENTRIES_MAX + 1);
        assert_eq!((found.kept.len(), found.is_whole), (NEARBY_NAMES_MAX, false));
    }

    /// Up to that size, all entries are sorted and counted.
    #[test]
    fn a_directory_within_the_bound_is_told_whole() {
        let found = Found::among(numbered(NEARBY_ENTRIES_MAX)).unwrap();
        assert_eq!((found.left_out, found.is_whole), (NEARBY_ENTRIES_MAX - NEARBY_NAMES_MAX, true));
        assert_eq!(found.kept.keys().next().unwrap(), "0000000");
    }

    #[test]
    fn the_text_says_when_more_was_not_looked_at() {
        let mut nearby = Nearby {
            directory: ".".into(),
            is_parent: true,
            names: vec!["a".to_owned()],
            left_out: 9_999,
            is_whole: false,
        };
        assert_eq!(nearby.to_string(), "the directory contains more than 10000 entries, among them: a");
        nearby.is_whole = true;
        assert_eq!(nearby.to_string(), "the directory contains: a, … and 9999 more");
    }
}
