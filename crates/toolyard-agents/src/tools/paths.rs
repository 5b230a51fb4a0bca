//! The paths of agents: those of the host.

use std::{
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};
use toolyard::{PathEscape, PathScope};

/// The paths of the host, as agents name them (AG-5): absolute, or from a directory. What an agent may use of them its
/// grants say, and nothing else.
///
/// A path leads where its links lead now. A part that does not exist is kept as spelt.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use toolyard::PathScope;
/// use toolyard_agents::HostPaths;
/// let paths = HostPaths::from_directory("/");
/// assert_eq!(paths.resolve("/no such directory/../x").unwrap(), Path::new("x"));
/// ```
#[derive(Debug, Clone)]
pub struct HostPaths {
    directory: PathBuf,
}

impl HostPaths {
    /// Relative paths begin at this directory, which is absolute.
    pub fn from_directory(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where a path leads, absolute and without links.
    ///
    /// # Errors
    /// Those of the system, but for what does not exist.
    pub(crate) fn canonical(&self, path: &str) -> io::Result<PathBuf> {
        let path = self.directory.join(path);
        let mut rest: Vec<OsString> = Vec::new();
        let mut there = path.as_path();
        loop {
            match fs::canonicalize(there) {
                Ok(mut found) => {
                    rest.iter().rev().for_each(|part| found.push(part));
                    return Ok(found);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // A link that leads nowhere says by its name where it would lead, and is not followed there.
                    if fs::symlink_metadata(there).is_ok() {
                        return Err(error);
                    }
                    let (Some(parent), Some(last)) = (there.parent(), there.components().next_back()) else {
                        return Err(error);
                    };
                    match last {
                        Component::Normal(name) => rest.push(name.to_owned()),
                        // Up from what does not exist is where it would be.
                        Component::ParentDir => return self.canonical_by_name(&path),
                        _ => {}
                    }
                    there = parent;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same for a path that goes up from what does not exist: by its name alone, and then where that leads.
    fn canonical_by_name(&self, path: &Path) -> io::Result<PathBuf> {
        let mut plain = PathBuf::new();
        for part in path.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                other => plain.push(other),
            }
        }
        let plain = plain.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        self.canonical(plain)
    }
}

impl PathScope for HostPaths {
    fn root(&self) -> &Path {
        Path::new("/")
    }

    fn check(&self, path: &str) -> Result<(), PathEscape> {
        match path.is_empty() || path.contains('\0') {
            true => Err(PathEscape::new(path)),
            false => Ok(()),
        }
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, PathEscape> {
        self.check(path)?;
        let found = self.canonical(path).map_err(|_| PathEscape::new(path))?;
        found.strip_prefix("/").map(Path::to_owned).map_err(|_| PathEscape::new(path))
    }

    #[cfg(target_os = "linux")]
    fn open(&self, path: &Path) -> io::Result<toolyard::Opened> {
        super::files::opened(path)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// AG-5: a path leads where its links lead; what does not exist is kept as spelt, and a link to nowhere leads nowhere.
    #[test]
    fn a_path_leads_where_its_links_lead() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        let paths = HostPaths::from_directory(&root);
        let inside = |path: &str| root.strip_prefix("/").unwrap().join(path);
        assert_eq!(paths.resolve("link/new").unwrap(), inside("real/new"));
        assert_eq!(paths.resolve(root.join("link").to_str().unwrap()).unwrap(), inside("real"));
        assert_eq!(paths.resolve("none/../real").unwrap(), inside("real"));
        assert_eq!(paths.resolve("none/../link/a").unwrap(), inside("real/a"));
        assert!(paths.resolve("dangling").is_err() && paths.resolve("").is_err());
        assert_eq!(paths.resolve("/").unwrap(), Path::new(""));
    }
}
