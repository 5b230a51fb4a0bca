//! The paths of agents: those of the host.

use std::{
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
};
use toolyard::{PathEscape, PathScope};

/// How many links in a row may lead to what does not exist.
const LINKS_MAX: usize = 40;

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
        resolved(&self.directory.join(path), 0)
    }
}

/// The same for an absolute path that is reached by so many links to what does not exist.
fn resolved(path: &Path, links: usize) -> io::Result<PathBuf> {
    if links > LINKS_MAX {
        return Err(io::Error::other("too many links"));
    }
    let mut rest: Vec<OsString> = Vec::new();
    let mut there = path;
    loop {
        let error = match fs::canonicalize(there) {
            Ok(found) => return Ok(rest.iter().rev().fold(found, |found, part| found.join(part))),
            Err(error) => error,
        };
        // What stands behind a file does not exist either.
        if !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) {
            return Err(error);
        }
        let parent = there.parent().ok_or(error)?;
        if let Ok(target) = fs::read_link(there) {
            // A link to what does not exist yet: whoever makes that makes it there.
            let target = rest.iter().rev().fold(parent.join(target), |target, part| target.join(part));
            return resolved(&target, links + 1);
        }
        match there.components().next_back() {
            Some(Component::Normal(name)) => rest.push(name.to_owned()),
            // Up from what does not exist is where it would be.
            Some(Component::ParentDir) => return resolved(&by_name(path), links + 1),
            _ => {}
        }
        there = parent;
    }
}

/// An absolute path without `..`, by its name alone.
fn by_name(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
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

    /// AG-5: a path leads where its links lead, also to what does not exist, which is kept as spelt.
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
        assert_eq!(paths.resolve("dangling/x").unwrap(), inside("nowhere/x"));
        fs::write(root.join("file"), "").unwrap();
        assert_eq!(paths.resolve("file/../../x").unwrap(), inside("x").parent().unwrap().with_file_name("x"));
        symlink("round", root.join("round")).unwrap();
        symlink("/etc", root.join("evil")).unwrap();
        for there in ["evil/passwd/../hosts", "evil/passwd/x"] {
            assert!(paths.resolve(there).unwrap().starts_with("etc"), "{there}");
        }
        assert!(paths.resolve("round").is_err() && paths.resolve("").is_err());
        assert_eq!(paths.resolve("/").unwrap(), Path::new(""));
    }
}
