//! Directories for tests to work in.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// An empty directory of this name.
pub(crate) fn dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}
