//! The seam between the gate and a workspace: which paths a session may name.

mod opened;

pub use opened::Opened;

use serde::{Deserialize, Serialize};
use std::{
    fmt, io,
    path::{Component, Path, PathBuf},
};

/// How a tool uses a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FsMode {
    /// Reads it.
    #[serde(rename = "r", alias = "read")]
    Read,
    /// Writes it.
    #[serde(rename = "w", alias = "write")]
    Write,
    /// Reads and writes it.
    #[serde(rename = "rw")]
    ReadWrite,
}

/// The error for a path that leaves the workspace (PO-2). Its wording is fixed (V5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEscape {
    /// The path as requested.
    pub path: String,
}

impl PathEscape {
    /// The error for this path.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into() }
    }
}

impl fmt::Display for PathEscape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::wording::path_escapes(&self.path))
    }
}

impl std::error::Error for PathEscape {}

/// A directory tree that calls are confined to.
///
/// The gate asks it about every argument that a tool declares as a path
/// ([`ToolSpec::requires_fs`](crate::ToolSpec::requires_fs)) before anything runs, so that a path that plainly leaves
/// the tree is refused without a permit. That check is about the name alone. What a name leads to can change between
/// the check and the use, so the tree confines again, by directory handle, when a file is opened (PO-2).
pub trait PathScope: Send + Sync {
    /// The root, as a person would name it.
    fn root(&self) -> &Path;

    /// Whether `path`, taken by its name alone, stays under the root.
    ///
    /// # Errors
    /// [`PathEscape`] if it does not.
    fn check(&self, path: &str) -> Result<(), PathEscape>;

    /// The path relative to the root, with links followed and no `..` left, as grants of paths compare it (PO-1b).
    ///
    /// A part that does not exist yet is kept as spelt. Called only if the agent's paths are bounded or the call needs
    /// approval; it may read the disk. The default looks at the name alone, which is right for a tree without links.
    ///
    /// # Errors
    /// [`PathEscape`] if the path leads out of the tree.
    fn resolve(&self, path: &str) -> Result<PathBuf, PathEscape> {
        self.check(path)?;
        resolve_by_name(self.root(), path)
    }

    /// Opens what stands at a plain path, relative to the root and without `..`, following no link: what a sandbox is
    /// given of the tree (SM-2). It blocks the thread.
    ///
    /// # Errors
    /// An error of the operating system; also if the path leads through a file, or to something that is neither a file
    /// nor a directory. The default has no handles and always fails.
    fn open(&self, path: &Path) -> io::Result<Opened> {
        let _ = path;
        Err(io::Error::new(io::ErrorKind::Unsupported, "this workspace has no handles"))
    }
}

/// The path relative to `root`, without `.` and `..`, by its name alone: where it leads if nothing in it is a link.
///
/// # Errors
/// [`PathEscape`] if it leaves the root.
pub fn resolve_by_name(root: &Path, path: &str) -> Result<PathBuf, PathEscape> {
    let given = Path::new(path);
    let relative = given.strip_prefix(root).unwrap_or(given);
    let mut resolved = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::CurDir => {}
            Component::ParentDir if resolved.pop() => {}
            _ => return Err(PathEscape::new(path)),
        }
    }
    Ok(resolved)
}
