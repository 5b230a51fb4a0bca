//! A temporary file that replaces another file atomically.

use cap_std::fs::{Dir, File, OpenOptions, Permissions};
use std::{
    ffi::OsStr,
    io::{self, Write as _},
    process,
    sync::atomic::{AtomicU64, Ordering},
};

/// How many names are tried. Only files left behind by a killed process with the same id can collide.
const NAMES_MAX: usize = 100;

/// Makes the names within this process unique.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A temporary file, removed on drop unless it was put in place.
pub(super) struct TempFile<'d> {
    parent: &'d Dir,
    name: String,
    file: File,
    in_place: bool,
}

impl<'d> TempFile<'d> {
    /// Creates an empty file in `parent`. It must be new: an existing file or link of that name is not touched.
    pub(super) fn create(parent: &'d Dir, private: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if private {
            owner_only(&mut options);
        }
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..NAMES_MAX {
            let name = fresh_name();
            match parent.open_with(&name, &options) {
                Ok(file) => {
                    return Ok(Self { parent, name, file, in_place: false });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    pub(super) fn fill(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    pub(super) fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.file.set_permissions(permissions)
    }

    /// Renames the file to `leaf`, replacing any file of that name.
    pub(super) fn rename_to(mut self, leaf: &OsStr) -> io::Result<()> {
        self.parent.rename(&self.name, self.parent, leaf)?;
        self.in_place = true;
        Ok(())
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.in_place {
            // Nothing more can be done if the removal fails; the caller already has the first error.
            let _ = self.parent.remove_file(&self.name);
        }
    }
}

fn fresh_name() -> String {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!(".toolyard-{}-{number}.tmp", process::id())
}

#[cfg(unix)]
fn owner_only(options: &mut OpenOptions) {
    cap_std::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(not(unix))]
fn owner_only(_: &mut OpenOptions) {}
