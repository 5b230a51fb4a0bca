//! What a call may reach, as what a program is confined to.

use crate::ungiven;
use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
};
use toolyard::{OpenedPath, Reach, SandboxError};
use toolyard_core::{Command, FsMode, Opened, Sandbox};
use toolyard_process::Confinement;

/// Grants the paths that a call may use, each by its handle, at the place where the host has it.
///
/// # Errors
/// [`SandboxError::Unreachable`] for a path that cannot be given: one that may be written without being read, or made.
pub(super) fn grant(
    mut confinement: Confinement,
    reach: &Reach<'_>,
    sandbox: Sandbox,
) -> Result<Confinement, SandboxError> {
    let Some(root) = reach.root() else { return Ok(confinement) };
    for OpenedPath { of, opened, .. } in reach.open()? {
        if let Some(why) = ungiven(sandbox, of.mode, &opened) {
            return Err(SandboxError::Unreachable { sandbox, path: of.path, why: why.to_owned() });
        }
        // Where there is nothing, there is nothing to read.
        if let Opened::Directory(handle) | Opened::File(handle) = opened {
            confinement = confinement.grant(handle, at(root, &of.path), of.mode == FsMode::ReadWrite);
        }
    }
    Ok(confinement)
}

/// Grants the files that a program is made of, unless they are parts of the system, for reading.
///
/// # Errors
/// Which of them cannot be opened, and why.
pub(super) fn files(
    mut confinement: Confinement,
    command: &Command,
    system: &[PathBuf],
) -> Result<Confinement, String> {
    let own = std::iter::once(&command.program).filter(|program| program.is_absolute());
    let all: BTreeSet<&PathBuf> = own.chain(command.files.iter()).collect();
    let is_within_another = |file: &Path| all.iter().any(|other| file != *other && file.starts_with(other));
    for file in all.iter().filter(|file| !is_within_another(file)) {
        // What a link leads to is granted where it leads; the link is a part of what holds it, or is made of nothing else.
        let path = file.canonicalize().map_err(|error| format!("'{}': {error}", file.display()))?;
        if system.iter().any(|part| file.starts_with(part) && path.starts_with(part)) {
            continue;
        }
        let handle = File::open(&path).map_err(|error| format!("'{}': {error}", path.display()))?;
        confinement = confinement.grant(handle, file, false);
    }
    Ok(confinement)
}

fn at(root: &Path, path: &Path) -> PathBuf {
    if path == Path::new(".") { root.to_owned() } else { root.join(path) }
}
