//! Paths that a program reaches, opened one by one.

use super::{Confinement, SYSTEM, SYSTEM_FILES};
use rustix::fs::{Mode, OFlags, open};
use std::{
    io,
    path::{Path, PathBuf},
};

/// What a confined program reaches: the system, and paths that are added to it.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use toolyard_process::Reached;
/// # let dir = tempfile::tempdir()?;
/// # let work = dir.path();
/// let mut reached = Reached::new([]);
/// reached.add(work, true)?;
/// reached.read(Path::new("/usr/bin/env"))?; // a part of the system, which it reaches already
/// assert!(reached.covers(&work.join("notes.md")) && !reached.covers(Path::new("/root")));
/// let confinement = reached.confinement();
/// # let _ = confinement;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Reached {
    confinement: Confinement,
    paths: Vec<ReachedPath>,
    system: Vec<PathBuf>,
}

/// A path that a program reaches beside the system.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReachedPath {
    /// Where the program finds it.
    pub at: PathBuf,
    /// Where it lies, with links resolved.
    pub lies: PathBuf,
    /// Whether the program writes it too.
    pub is_writable: bool,
}

impl Reached {
    /// The system, with these absolute paths as parts of it.
    pub fn new(more: impl IntoIterator<Item = PathBuf>) -> Self {
        let system = SYSTEM.iter().chain(SYSTEM_FILES).map(PathBuf::from);
        let system: Vec<PathBuf> = system.chain(more).collect();
        let confinement = Confinement::new().system(system.iter().cloned());
        Self { confinement, paths: Vec::new(), system }
    }

    /// Adds a path, absolute and without `..` ([`plain_path`](crate::plain_path)), which the program finds where it is
    /// here.
    ///
    /// # Errors
    /// Which path cannot be opened, and why.
    pub fn add(&mut self, at: impl Into<PathBuf>, is_writable: bool) -> io::Result<()> {
        let at = at.into();
        let named = |error: io::Error| io::Error::new(error.kind(), format!("'{}': {error}", at.display()));
        let lies = at.canonicalize().map_err(named)?;
        // Not opened to be read: a pipe would keep this thread waiting.
        let handle = open(&lies, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let handle = handle.map_err(|error| named(error.into()))?;
        self.confinement = std::mem::take(&mut self.confinement).grant(handle, &at, is_writable);
        self.paths.push(ReachedPath { at, lies, is_writable });
        Ok(())
    }

    /// Lets it read a path, unless it does already.
    ///
    /// # Errors
    /// As those of [`add`](Self::add).
    pub fn read(&mut self, path: &Path) -> io::Result<()> {
        if self.covers(path) { Ok(()) } else { self.add(path, false) }
    }

    /// Whether it reaches this path by its name.
    pub fn covers(&self, path: &Path) -> bool {
        self.all().any(|reached| path.starts_with(reached))
    }

    /// Where everything is that it reaches.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(|path| &path.at).chain(&self.system).map(PathBuf::as_path)
    }

    /// What was added to the system.
    pub fn paths(&self) -> &[ReachedPath] {
        &self.paths
    }

    /// A confinement to this.
    pub fn confinement(self) -> Confinement {
        self.confinement
    }
}
