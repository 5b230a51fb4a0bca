//! A directory tree that file operations cannot leave.
//!
//! ```text
//!   path ──► name ────────► the directory handle ──────► file, or parent handle + leaf
//!            "../x" is       resolves beneath itself:      read, list     write: temp + rename
//!            refused early   links out are refused here
//! ```
//!
//! `name` looks at text only and answers early; nothing is confined by it. What confines is the handle: every
//! open goes through it, and on Linux the kernel itself resolves beneath it (`openat2`, `RESOLVE_BENEATH`), so
//! that a link swapped between a check and the use leads nowhere else.

mod append;
mod delete;
#[cfg(unix)]
mod directory;
mod fault;
mod list;
mod name;
mod nearby;
mod open;
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
pub use nearby::{NEARBY_NAMES_MAX, Nearby};
pub use read::READ_BYTES_MAX;
pub use write::WRITE_BYTES_MAX;

use cap_std::fs::Dir;
use std::{fmt, path::Path, path::PathBuf, sync::Arc};
use toolyard_core::{PathEscape, PathScope};

/// A directory tree that file operations cannot leave (PO-2). Cheap to clone; clones share one handle.
///
/// # Paths
/// A relative path resolves under the root. An absolute one passes only when it lies inside the root, as the
/// root was given or in its canonical form. `..` may go up as far as the root. Symbolic links are followed as
/// long as they stay inside; one that leads out is refused when it is followed, and so is any link with an
/// absolute target. `~`, `file://`, `%2e%2e` and, except on Windows, `\` have no meaning in a path: they are
/// parts of names. Every refusal of this kind is one error, [`PathEscape`].
///
/// # What it does not promise
/// Hard links and mount points inside the tree are part of the tree, wherever else their content is known.
/// A process that may move directories out of the tree while an operation runs takes that operation's file
/// along. Operations block the thread; they take no lock, so two writers of one file race and the last wins,
/// with one of the two contents whole.
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
/// assert_eq!(missing.to_string(), "no such file 'notes/tody.md'; the directory holds: today.md");
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
    /// The root as it was given, absolute: the other name that an absolute path may begin with.
    given: PathBuf,
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
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("root", &self.inner.root).finish_non_exhaustive()
    }
}
