//! What a call may reach, as the directories of a module.
//!
//! ```text
//!   a directory to read ──────────────────────────────────────► the same, by handle, read only
//!   a directory to write ─┬─ holds nothing that is kept ──────► the same, by handle
//!                         └─ holds something ─► read only, and each directory in it likewise
//!   a file to read ───────────────────────────────────────────► a copy in a directory of the call's own
//! ```

use super::{WASM, staged::staged};
use crate::ungiven;
use std::{
    fs::File,
    path::{Path, PathBuf},
};
use tempfile::TempDir;
use toolyard::{OpenedPath, Reach, ReachedPath, SandboxError};
use toolyard_core::{FsMode, Opened, PathScope as _};
use toolyard_tools::Workspace;
use toolyard_wasm::Directory;

/// The most directories that one call is given.
const DIRECTORIES_MAX: usize = 256;

/// What a call is given.
#[derive(Default)]
pub(super) struct Granted {
    directories: Vec<Directory>,
    files: Vec<(File, PathBuf)>,
}

impl Granted {
    /// The directories of the module, with one that holds the copies of its files; it lives as long as what is returned
    /// with them. This blocks the thread.
    ///
    /// # Errors
    /// Why a file could not be copied.
    pub(super) fn staged(mut self) -> Result<(Vec<Directory>, Option<TempDir>), String> {
        if self.files.is_empty() {
            return Ok((self.directories, None));
        }
        let copies = staged(self.files)?;
        self.directories.push(Directory::at(copies.path(), "."));
        Ok((self.directories, Some(copies)))
    }
}

/// Grants the paths that a call may use; `kept` are those that it must not write, with links resolved.
///
/// # Errors
/// [`SandboxError::Unreachable`] for a path that a module cannot be given as it was granted.
pub(super) fn grant(
    reach: &Reach<'_>,
    workspace: Option<&Workspace>,
    kept: &[PathBuf],
) -> Result<Granted, SandboxError> {
    let mut granted = Granted::default();
    let Some(root) = reach.root() else { return Ok(granted) };
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    for OpenedPath { of, opened, .. } in reach.open()? {
        let ReachedPath { path, mode, .. } = of;
        let unreachable =
            |why: &str| SandboxError::Unreachable { sandbox: WASM, path: path.clone(), why: why.to_owned() };
        if let Some(why) = ungiven(WASM, mode, &opened) {
            return Err(unreachable(why));
        }
        let is_writable = mode == FsMode::ReadWrite;
        match opened {
            Opened::Directory(handle) if is_writable => {
                let mut writable = Writable { root: &root, workspace, kept, given: &mut granted.directories };
                writable.give(handle, &path).map_err(|why| unreachable(&why))?;
            }
            Opened::Directory(handle) => granted.directories.push(directory(&root, handle, &path)),
            Opened::File(handle) => granted.files.push((handle, path)),
            // There is nothing to read.
            _ => {}
        }
    }
    Ok(granted)
}

/// Directories to write, without what must not be written.
struct Writable<'a> {
    root: &'a Path,
    workspace: Option<&'a Workspace>,
    kept: &'a [PathBuf],
    given: &'a mut Vec<Directory>,
}

impl Writable<'_> {
    /// Gives what stands at this path.
    fn give(&mut self, handle: File, path: &Path) -> Result<(), String> {
        if self.given.len() >= DIRECTORIES_MAX {
            return Err(format!(
                "which holds something that no tool may write, beside more than {DIRECTORIES_MAX} directories: grant those \
                 that the module writes"
            ));
        }
        let at = joined(self.root, path);
        let (is_kept, holds_kept) = self.kept.iter().fold((false, false), |(is, holds), kept| {
            (is || at.starts_with(kept), holds || kept.starts_with(&at))
        });
        let given = directory(self.root, handle, path);
        if !is_kept && !holds_kept {
            self.given.push(given.writable());
            return Ok(());
        }
        // Of what a directory is given with for reading, nothing can be renamed, removed or linked from outside of it.
        self.given.push(given);
        if is_kept { Ok(()) } else { self.give_below(&at, path) }
    }

    /// Gives the directories in this one. Their names are read by path, which may be another by now; each is opened
    /// through the workspace, by no link, and judged by the name under which that found it.
    fn give_below(&mut self, at: &Path, path: &Path) -> Result<(), String> {
        let Some(workspace) = self.workspace else {
            return Err("which holds something that no tool may write".to_owned());
        };
        let failed = |error: std::io::Error| format!("whose directories cannot be listed: {error}");
        for entry in at.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_type().map_err(failed)?.is_dir() {
                continue;
            }
            let below = if path == Path::new(".") {
                PathBuf::from(entry.file_name())
            } else {
                path.join(entry.file_name())
            };
            // One that cannot be opened is not given.
            if let Ok(Opened::Directory(handle)) = workspace.open(&below) {
                self.give(handle, &below)?;
            }
        }
        Ok(())
    }
}

/// A directory under its path in the workspace.
#[cfg(target_os = "linux")]
fn directory(_: &Path, handle: File, path: &Path) -> Directory {
    Directory::of(handle, name(path))
}

/// A directory under its path in the workspace. There is no way here to give it by its handle.
#[cfg(not(target_os = "linux"))]
fn directory(root: &Path, _: File, path: &Path) -> Directory {
    Directory::at(joined(root, path), name(path))
}

/// A path as modules write them.
fn name(path: &Path) -> String {
    path.to_string_lossy().replace(std::path::MAIN_SEPARATOR, "/")
}

fn joined(root: &Path, path: &Path) -> PathBuf {
    if path == Path::new(".") { root.to_owned() } else { root.join(path) }
}
