//! The limit on open files of this process, and that of the programs that it starts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{io, sync::OnceLock};

/// What it was before it was raised.
static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises this process's limit on open files as far as it may. Programs that are started under a helper afterwards have the
/// limit that was before: some look at each descriptor that they may have.
///
/// # Errors
/// Those of the system. The limit is then as it was.
pub fn raise_open_files() -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(before) = current.filter(|before| maximum.is_none_or(|most| *before < most)) else {
        return Ok(()); // it is as high as it may be
    };
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    BEFORE.get_or_init(|| before);
    Ok(())
}

/// The limit that programs have, unless it is that of this process.
#[cfg(target_os = "linux")]
pub(crate) fn before() -> Option<u64> {
    BEFORE.get().copied()
}

/// Lowers this process's limit, and so that of all that it starts.
#[cfg(target_os = "linux")]
pub(crate) fn lower(most: u64) -> io::Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    match current.is_none_or(|current| current > most) {
        true => Ok(setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum })?),
        false => Ok(()),
    }
}
