//! The seam between the gate and a workspace: which paths a session may name.

use serde::{Deserialize, Serialize};
use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

/// How a tool uses a path it is given.
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

/// The one error of a path that leaves the workspace (PO-2). The wording is fixed (V5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEscape {
    /// The path as it was asked for.
    pub path: String,
}

impl PathEscape {
    /// `path` leaves the workspace.
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
/// ([`ToolSpec::requires_fs`](crate::ToolSpec::requires_fs)) before anything runs, so that a path which
/// plainly leaves the tree is refused without a permit. That answer is about the name alone: what a name
/// leads to can change between the check and the use, so the tree confines again, by directory handle, when
/// a file is opened (PO-2).
pub trait PathScope: Send + Sync {
    /// The root, as a person would name it.
    fn root(&self) -> &Path;

    /// Whether `path`, taken by its name alone, stays under the root.
    ///
    /// # Errors
    /// [`PathEscape`] when it does not.
    fn check(&self, path: &str) -> Result<(), PathEscape>;

    /// `path` as it reads from the root with links followed and no `..` left: what grants of paths are compared with
    /// (PO-1b). What is not there yet counts as it is spelt. Asked only where an agent's paths are bounded; may look at
    /// the disk. Without links in the tree the name alone says it, which is what this does unless it is overwritten.
    ///
    /// # Errors
    /// [`PathEscape`] when it leads out of the tree.
    fn resolve(&self, path: &str) -> Result<PathBuf, PathEscape> {
        self.check(path)?;
        let given = Path::new(path);
        let relative = given.strip_prefix(self.root()).unwrap_or(given);
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
}
