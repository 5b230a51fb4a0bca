//! Opens the root.

use super::{Inner, Workspace};
use crate::{RootError, WorkspaceError};
use cap_std::{ambient_authority, fs::Dir};
use std::{
    env, io,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};

impl Workspace {
    /// Opens the directory `root`, once: the workspace stays this directory, even if its name later refers to another
    /// one. `~` at the start is the home directory.
    ///
    /// # Errors
    /// [`WorkspaceError::Root`] when the directory does not exist or cannot be opened.
    pub fn open(root: impl AsRef<Path>) -> Result<Self, WorkspaceError> {
        let root = root.as_ref();
        let expanded = expand_home(root, env::home_dir()).map_err(WorkspaceError::Root)?;
        let failed = |source| {
            let root = root.to_owned();
            WorkspaceError::Root(RootError::Open { root, source })
        };
        let inner = open(&expanded).map_err(failed)?;
        Ok(Self { inner: Arc::new(inner) })
    }
}

fn open(path: &Path) -> io::Result<Inner> {
    let given = std::path::absolute(path)?;
    let root = path.canonicalize()?;
    let dir = Dir::open_ambient_dir(&root, ambient_authority())?;
    Ok(Inner { dir, root, given, guarded: RwLock::default() })
}

/// Expands `~` and `~/x` to the home directory. `~name` stays unchanged.
fn expand_home(path: &Path, home: Option<PathBuf>) -> Result<PathBuf, RootError> {
    match (path.strip_prefix("~"), home) {
        (Err(_), _) => Ok(path.to_owned()),
        (Ok(rest), Some(home)) => Ok(home.join(rest)),
        (Ok(_), None) => Err(RootError::NoHome(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_the_home_directory() {
        let home = || Some(PathBuf::from("/home/ada"));
        assert_eq!(expand_home(Path::new("~/repo"), home()).unwrap(), Path::new("/home/ada/repo"));
        assert_eq!(expand_home(Path::new("~"), home()).unwrap(), Path::new("/home/ada/"));
        assert_eq!(expand_home(Path::new("~bob/x"), home()).unwrap(), Path::new("~bob/x"));
        assert_eq!(expand_home(Path::new("a/~/x"), home()).unwrap(), Path::new("a/~/x"));
        assert!(matches!(expand_home(Path::new("~/x"), None), Err(RootError::NoHome(_))));
    }

    #[test]
    fn a_root_that_is_no_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        for root in [file, dir.path().join("missing")] {
            assert!(matches!(Workspace::open(root), Err(WorkspaceError::Root(_))));
        }
    }
}
