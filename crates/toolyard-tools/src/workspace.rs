//! A directory tree that file operations cannot leave.
//!
//! ```text
//!   path ──► name ────────► the directory handle ──────► file, or parent handle + leaf
//!            "../x" is       resolves beneath itself:      read, list     write: temp + rename
//!            refused early   links out are refused here
//! ```
//!
//! `name` checks the text only, to answer early; it confines nothing. The handle does: every open goes through it,
//! and on Linux the kernel itself resolves beneath it (`openat2`, `RESOLVE_BENEATH`), so that a link that is
//! swapped between check and use cannot lead outside.

mod append;
mod delete;
#[cfg(unix)]
mod directory;
mod guard;
mod io_error;
mod list;
mod name;
mod nearby;
mod open;
mod opened;
mod patch;
mod place;
mod read;
mod resolve;
mod root;
mod temp;
mod write;

#[cfg(test)]
mod tests;

pub use list::{Entry, EntryKind, LIST_ENTRIES_MAX, Listing};
pub use name::PATH_BYTES_MAX;
pub use nearby::{NEARBY_ENTRIES_MAX, NEARBY_NAMES_MAX, Nearby};
pub use read::READ_BYTES_MAX;
pub use write::WRITE_BYTES_MAX;

use cap_std::fs::Dir;
use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};
use toolyard_core::{Opened, PathEscape, PathScope};

/// A directory tree that file operations cannot leave (PO-2). Cheap to clone; clones share one handle.
///
/// # Paths
/// A relative path resolves under the root. An absolute path is accepted only if it lies inside the root, either
/// as the root was given or in its canonical form. `..` may go up as far as the root. Symbolic links are followed
/// as long as they stay inside; a link that leads out is refused when it is followed, and so is any link with an
/// absolute target. `~`, `file://`, `%2e%2e` and, except on Windows, `\` have no special meaning: they are parts
/// of names. Every refusal of this kind is one error, [`PathEscape`].
///
/// # What it does not promise
/// Hard links and mount points inside the tree are part of the tree, even if their content is also reachable from
/// elsewhere. If a process moves a directory out of the tree while an operation uses it, the operation's file
/// moves along. Operations block the thread. They take no lock, so two writers of one file race: the last wins,
/// and the file has one of the two contents in full.
///
/// # Examples
/// ```
/// use toolyard_tools::{Workspace, WorkspaceError};
/// # let dir = tempfile::tempdir()?;
/// # let root = dir.path();
/// let workspace = Workspace::open(root)?;
/// workspace.write("notes/today.md", "milk\n")?;
/// assert_eq!(workspace.read("notes/../notes/today.md")?, "milk\n");
///
/// let refused = workspace.read("../etc/passwd").unwrap_err();
/// assert_eq!(refused.to_string(), "Path '../etc/passwd' escapes workspace boundary");
/// let missing = workspace.read("notes/tody.md").unwrap_err();
/// assert_eq!(missing.to_string(), "no such file 'notes/tody.md'; the directory contains: today.md");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Workspace {
    inner: Arc<Inner>,
}

struct Inner {
    dir: Dir,
    /// The canonical root: for messages and for absolute paths, never for opening.
    root: PathBuf,
    /// The root as it was given, made absolute: the other prefix that an absolute path may have.
    given: PathBuf,
    /// The files that no operation writes.
    guarded: RwLock<Vec<guard::Guarded>>,
}

impl Workspace {
    fn dir(&self) -> &Dir {
        &self.inner.dir
    }
}

impl PathScope for Workspace {
    fn root(&self) -> &Path {
        &self.inner.root
    }

    fn check(&self, path: &str) -> Result<(), PathEscape> {
        self.relative(path).map(drop)
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, PathEscape> {
        self.resolved(path)
    }

    fn open(&self, path: &Path) -> io::Result<Opened> {
        self.opened(path)
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("root", &self.inner.root).finish_non_exhaustive()
    }
}
