//! What a call may reach, by handle.

use super::MICRO_VM;
use crate::ungiven;
use std::{
    fs::File,
    path::{Path, PathBuf},
};
use toolyard::{OpenedPath, Reach, SandboxError};
use toolyard_core::{FsMode, Opened};

/// What a call is given of the workspace.
#[derive(Default)]
pub(super) struct Granted {
    /// The workspace's root; none without a workspace.
    pub(super) root: Option<PathBuf>,
    /// What may be read, with its path relative to the root.
    pub(super) handles: Vec<(File, PathBuf)>,
    /// What may be written, with all below it.
    pub(super) writable: Vec<PathBuf>,
}

/// Grants the paths that a call may use.
///
/// # Errors
/// [`SandboxError::Unreachable`] for one that may be written without being read.
pub(super) fn grant(reach: &Reach<'_>) -> Result<Granted, SandboxError> {
    let mut granted = Granted::default();
    let Some(root) = reach.root() else { return Ok(granted) };
    granted.root = Some(root.to_owned());
    for OpenedPath { of, opened, .. } in reach.open()? {
        if let Some(why) = ungiven(MICRO_VM, of.mode, &opened) {
            let why = why.to_owned();
            return Err(SandboxError::Unreachable { sandbox: MICRO_VM, path: of.path, why });
        }
        if of.mode == FsMode::ReadWrite {
            granted.writable.push(plain(&of.path));
        }
        if let Opened::Directory(handle) | Opened::File(handle) = opened {
            granted.handles.push((handle, plain(&of.path)));
        }
    }
    Ok(granted)
}

/// The path without `.`, so that it can be joined and compared.
fn plain(path: &Path) -> PathBuf {
    if path == Path::new(".") { PathBuf::new() } else { path.to_owned() }
}
