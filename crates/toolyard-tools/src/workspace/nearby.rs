//! Lists the names that exist near a missing file.

use super::{Workspace, list};
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// The most names that an error lists; the rest is counted.
pub const NEARBY_NAMES_MAX: usize = 20;

/// The contents of the nearest existing directory of a missing path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Nearby {
    /// The directory, relative to the root; `.` is the root.
    pub directory: PathBuf,
    /// Whether it is the direct parent of the missing path.
    pub is_parent: bool,
    /// The first names in it, in order; directories end in `/`, links in `@`, special files in `|`.
    pub names: Vec<String>,
    /// How many more there are.
    pub left_out: usize,
}

impl fmt::Display for Nearby {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_parent {
            true => f.write_str("the directory ")?,
            false => write!(f, "the nearest directory, '{}', ", self.directory.display())?,
        }
        match (self.names.is_empty(), self.left_out) {
            (true, _) => f.write_str("is empty"),
            (false, 0) => write!(f, "contains: {}", self.names.join(", ")),
            (false, more) => write!(f, "contains: {}, … and {more} more", self.names.join(", ")),
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
        let (kept, left_out) = list::first_by_name(entries, NEARBY_NAMES_MAX).ok()?;
        Some(Nearby {
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

/// Replaces an empty path, which no system call accepts, by `.`.
pub(super) fn or_root(path: &Path) -> &Path {
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}
