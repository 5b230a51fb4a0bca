//! Grants for paths.

use crate::{ContentHash, FsMode};
use std::path::{Component, Path, PathBuf};

/// Why a path cannot be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FsGrantError {
    /// The path is empty.
    #[error("a granted path must not be empty; the root of the workspace is '.'")]
    Empty,
    /// The path contains `..`.
    #[error("a granted path must not contain '..': '{0}'")]
    Parent(String),
    /// The path is absolute.
    #[error("a granted path must be relative to the workspace's root: '{0}'")]
    Absolute(String),
}

/// Permission to use a directory and everything below it, or one file, in one mode (PO-1b).
///
/// The path is a name in the workspace. If that name is a symbolic link, the grant covers nothing, because the paths
/// that calls name are compared after links are followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsGrant {
    mode: FsMode,
    path: PathBuf,
}

impl FsGrant {
    /// Grants `path` in this mode; `.` is the whole workspace.
    ///
    /// # Errors
    /// [`FsGrantError`] if the path is empty, absolute, or contains `..`.
    pub fn new(mode: FsMode, path: impl AsRef<Path>) -> Result<Self, FsGrantError> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            return Err(FsGrantError::Empty);
        }
        let mut kept = PathBuf::new();
        for component in path.components() {
            let shown = || path.display().to_string();
            match component {
                Component::Normal(name) => kept.push(name),
                Component::CurDir => {}
                Component::ParentDir => return Err(FsGrantError::Parent(shown())),
                Component::RootDir | Component::Prefix(_) => return Err(FsGrantError::Absolute(shown())),
            }
        }
        Ok(Self { mode, path: kept })
    }

    /// How the path may be used.
    pub fn mode(&self) -> FsMode {
        self.mode
    }

    /// The path, relative to the workspace's root; empty for the root itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What both grants cover; `None` if that is nothing.
    pub(super) fn common(&self, other: &Self) -> Option<Self> {
        let mode = match (self.mode, other.mode) {
            (one, other) if one == other => one,
            (FsMode::ReadWrite, one) | (one, FsMode::ReadWrite) => one,
            _ => return None,
        };
        let deeper = [self, other].into_iter().max_by_key(|grant| grant.path.components().count())?;
        let covers = |grant: &Self| deeper.path.starts_with(&grant.path);
        (covers(self) && covers(other)).then(|| Self { mode, path: deeper.path.clone() })
    }

    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let Self { mode, path } = self;
        let mode = match mode {
            FsMode::Read => "r",
            FsMode::Write => "w",
            FsMode::ReadWrite => "rw",
        };
        ContentHash::new("path").text(mode).path(path).finish()
    }

    /// Whether the grant covers this canonical path in this mode. No grant covers a path that is not canonical.
    pub fn covers(&self, mode: FsMode, path: &Path) -> bool {
        let is_canonical =
            path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let allowed = match self.mode {
            FsMode::ReadWrite => true,
            own => own == mode,
        };
        let path = path.strip_prefix(".").unwrap_or(path);
        allowed && is_canonical && path.starts_with(&self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PO-1b: a grant with `..` is refused when it is made.
    #[test]
    fn a_grant_is_a_plain_path() {
        let grant = |path: &str| FsGrant::new(FsMode::Read, path);
        assert_eq!(grant(""), Err(FsGrantError::Empty));
        assert_eq!(grant("a/../b"), Err(FsGrantError::Parent("a/../b".into())));
        assert_eq!(grant(".."), Err(FsGrantError::Parent("..".into())));
        assert_eq!(grant("/etc"), Err(FsGrantError::Absolute("/etc".into())));
        assert_eq!(grant("./a//b/"), grant("a/b"));
    }

    /// PO-1b: whole names are compared, not prefixes of names; no grant covers a path that is not canonical.
    #[test]
    fn a_grant_covers_what_is_under_it() {
        let grant = FsGrant::new(FsMode::ReadWrite, "a/b").unwrap();
        let covers = |path: &str| grant.covers(FsMode::Write, Path::new(path));
        assert!(covers("a/b") && covers("a/b/c") && covers("./a/b/c"));
        assert!(!covers("a") && !covers("a/bc") && !covers("b") && !covers("."));
        assert!(!covers("a/b/../../etc") && !covers("/a/b"));
        let root = FsGrant::new(FsMode::Read, ".").unwrap();
        assert!(root.covers(FsMode::Read, Path::new(".")) && root.covers(FsMode::Read, Path::new("x/y")));
        assert!(!root.covers(FsMode::Read, Path::new("../x")) && !root.covers(FsMode::Write, Path::new("x")));
    }
}
