//! What a program changed in its copies, written back to the workspace.
//!
//! ```text
//!   removed, the deepest first ─┐
//!   new directories, files ─────┴─► is it kept? ─► is the workspace as it was copied? ─► through the workspace's handle
//! ```

use super::copied::Copied;
use rustix::fs::{Mode, mkdirat};
use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};
use toolyard_core::{Opened, PathScope as _};
use toolyard_tools::Workspace;
use toolyard_vm::Change;

/// How new directories may be used, as far as the mask of this process lets them.
const DIRECTORY_MODE: u32 = 0o777;

/// Where changes are written back to.
pub(super) struct Back<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) copied: &'a Copied,
    /// What is not written, with links resolved (SB-11).
    pub(super) kept: &'a [PathBuf],
}

impl Back<'_> {
    /// Writes all that can be written, as long as that is wanted. This blocks the thread.
    ///
    /// # Errors
    /// What could not be, and why.
    pub(super) fn write(&self, changes: Vec<Change>, is_wanted: impl Fn() -> bool) -> Result<(), String> {
        let (removed, made): (Vec<_>, Vec<_>) =
            changes.into_iter().partition(|change| matches!(change, Change::Removed(_)));
        let all = removed.iter().rev().chain(&made).take_while(|_| is_wanted());
        let failed: Vec<String> = all.filter_map(|change| self.one(change).err()).collect();
        if failed.is_empty() { Ok(()) } else { Err(format!("not written back: {}", failed.join("; "))) }
    }

    fn one(&self, change: &Change) -> Result<(), String> {
        let (Change::Directory(path) | Change::File { path, .. } | Change::Removed(path)) = change;
        let named = |why: String| format!("'{}' ({why})", path.display());
        let inside = self.copied.root().and_then(|root| path.strip_prefix(root).ok());
        let inside = inside.ok_or_else(|| named("it lies outside of the workspace".to_owned()))?;
        if self.is_kept(inside) {
            return Err(named("no program writes it".to_owned()));
        }
        match change {
            Change::Directory(_) => self.directory(inside),
            Change::File { content, .. } => self.file(path, inside, content),
            Change::Removed(_) => self.removed(path, inside),
        }
        .map_err(named)
    }

    /// Whether this is kept, lies in what is, or holds something that is.
    fn is_kept(&self, inside: &Path) -> bool {
        let at = self.workspace.root().join(inside);
        self.kept.iter().any(|kept| at.starts_with(kept) || kept.starts_with(&at) && !at.is_dir())
    }

    fn directory(&self, inside: &Path) -> Result<(), String> {
        match self.workspace.open(inside).map_err(told)? {
            Opened::Directory(_) => Ok(()),
            Opened::Missing { nearest, name } => {
                mkdirat(nearest, name, Mode::from_raw_mode(DIRECTORY_MODE)).map_err(told)
            }
            _ => Err(CHANGED.to_owned()),
        }
    }

    fn file(&self, path: &Path, inside: &Path, content: &[u8]) -> Result<(), String> {
        let copy = self.copied.file(path);
        if copy.is_some_and(|copy| copy.content == content) {
            return Ok(());
        }
        let is_as_before = match (self.workspace.open(inside).map_err(told)?, copy) {
            (Opened::File(file), Some(copy)) => holds(file, &copy.content),
            (Opened::Missing { .. }, None) => true,
            _ => false,
        };
        if !is_as_before {
            return Err(CHANGED.to_owned());
        }
        self.workspace.write_bytes(inside, content).map_err(told)
    }

    /// Removes what was sent and is as it was. A machine that was taken over may tell of anything.
    fn removed(&self, path: &Path, inside: &Path) -> Result<(), String> {
        if self.copied.file(path).is_none() && !self.copied.has_directory(path) {
            return Err("it was not given to the machine".to_owned());
        }
        let is_as_before = match (self.workspace.open(inside).map_err(told)?, self.copied.file(path)) {
            (Opened::Missing { .. }, _) => return Ok(()),
            (Opened::File(file), Some(copy)) => holds(file, &copy.content),
            (Opened::Directory(_), None) => true,
            _ => false,
        };
        if !is_as_before {
            return Err(CHANGED.to_owned());
        }
        self.workspace.delete(inside).map_err(told)
    }
}

/// Why something is left as it is.
const CHANGED: &str = "it has changed meanwhile";

/// Whether a file holds this and nothing else.
fn holds(file: File, content: &[u8]) -> bool {
    let mut now = Vec::new();
    let most = u64::try_from(content.len()).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut now).is_ok() && now == content
}

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests;
