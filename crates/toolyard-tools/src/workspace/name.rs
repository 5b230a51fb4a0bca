//! Checks a path by its text alone.

use super::Workspace;
use crate::WorkspaceError;
use std::path::{Component, Path, PathBuf};
use toolyard_core::PathEscape;

/// The longest path that is looked up, in bytes, as on Linux. For a longer one the error is
/// [`WorkspaceError::BadPath`].
pub const PATH_BYTES_MAX: usize = 4096;

/// A path as it was asked for, and relative to the root.
pub(super) struct Name {
    requested: String,
    /// Relative and never empty. It may contain `..`, which only the directory handle can resolve, because the
    /// part before it may be a link.
    pub(super) inside: PathBuf,
}

impl Name {
    /// A copy of the path as it was asked for, for an error.
    pub(super) fn requested(&self) -> String {
        self.requested.clone()
    }

    pub(super) fn bad(&self, why: &'static str) -> WorkspaceError {
        let path = self.requested();
        WorkspaceError::BadPath { path, why }
    }

    pub(super) fn escape(&self) -> WorkspaceError {
        WorkspaceError::Escape(PathEscape::new(self.requested()))
    }

    /// Whether it ends in `/` or `/.`, and so can only mean a directory.
    pub(super) fn wants_directory(&self) -> bool {
        let text = self.requested.strip_suffix("/.").map_or(self.requested.as_str(), |_| "/");
        text.ends_with(std::path::is_separator)
    }
}

impl Workspace {
    /// Makes `path` relative to the root, by its text alone: `.` for the root itself, with any `..` kept.
    ///
    /// # Errors
    /// [`PathEscape`] when the text leaves the root. If it does not, a link may still lead out, which is refused when
    /// the path is opened.
    ///
    /// # Examples
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let workspace = toolyard_tools::Workspace::open(dir.path())?;
    /// use std::path::Path;
    /// let absolute = dir.path().join("src/lib.rs");
    /// assert_eq!(workspace.relative(absolute)?, Path::new("src/lib.rs"));
    /// assert!(workspace.relative("src/../../x").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn relative(&self, path: impl AsRef<Path>) -> Result<PathBuf, PathEscape> {
        let path = path.as_ref();
        let escape = || PathEscape::new(path.to_string_lossy());
        let inside = if path.has_root() { self.strip_root(path).ok_or_else(escape)? } else { path };
        if !stays_inside(inside) {
            return Err(escape());
        }
        let is_root = inside.as_os_str().is_empty();
        Ok(if is_root { Path::new(".") } else { inside }.to_owned())
    }

    /// Checks `path` and makes it relative: the first step of every operation.
    pub(super) fn name(&self, path: &Path) -> Result<Name, WorkspaceError> {
        let requested = path.to_string_lossy().into_owned();
        if let Some(why) = impossible(path) {
            return Err(WorkspaceError::BadPath { path: requested, why });
        }
        let inside = self.relative(path).map_err(WorkspaceError::Escape)?;
        Ok(Name { requested, inside })
    }

    fn strip_root<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let roots = [&self.inner.root, &self.inner.given];
        roots.into_iter().find_map(|root| path.strip_prefix(root).ok())
    }
}

fn impossible(path: &Path) -> Option<&'static str> {
    let bytes = path.as_os_str().as_encoded_bytes();
    if bytes.is_empty() {
        Some("it is empty; the root of the workspace is '.'")
    } else if bytes.contains(&0) {
        Some("it contains a NUL byte")
    } else if bytes.len() > PATH_BYTES_MAX {
        Some("it is longer than 4096 bytes")
    } else {
        None
    }
}

/// Whether the path, walked without resolving links, never goes above its start.
fn stays_inside(path: &Path) -> bool {
    let mut depth = 0_usize;
    path.components().all(|component| {
        let next = match component {
            Component::Normal(_) => depth.checked_add(1),
            Component::CurDir => Some(depth),
            Component::ParentDir => depth.checked_sub(1),
            Component::RootDir | Component::Prefix(_) => None,
        };
        depth = next.unwrap_or(depth);
        next.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_go_up_as_far_as_the_root() {
        for inside in ["a", "a/../b", "./a//b/../..", ".", "..a", "a/..b", "file:///etc/passwd", "..%2fx"] {
            assert!(stays_inside(Path::new(inside)), "{inside}");
        }
        for outside in ["..", "a/../..", "./../a", "/a", "a/../../a"] {
            assert!(!stays_inside(Path::new(outside)), "{outside}");
        }
    }

    #[test]
    fn a_trailing_slash_asks_for_a_directory() {
        let wants = |requested: &str| {
            let requested = requested.to_owned();
            let inside = PathBuf::new();
            Name { requested, inside }.wants_directory()
        };
        assert!(wants("a/") && wants("a/.") && wants("/"));
        assert!(!wants("a") && !wants("a.") && !wants("."));
    }
}
