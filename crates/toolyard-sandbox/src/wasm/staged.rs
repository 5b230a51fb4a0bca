//! Copies of files that were granted by themselves: a module is given directories, and one that holds such a file holds
//! others.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// The most bytes that are copied for one call.
const FILES_BYTES_MAX: u64 = 64 << 20;

/// A directory that holds these files, each at its path in the workspace, and goes with what is returned.
///
/// # Errors
/// Which file could not be copied, and why.
pub(super) fn staged(files: Vec<(File, PathBuf)>) -> Result<TempDir, String> {
    let failed = |error: io::Error| format!("no directory for the copies of its files: {error}");
    let directory = tempfile::Builder::new().prefix("toolyard-wasm-").tempdir().map_err(failed)?;
    let mut left = FILES_BYTES_MAX;
    for (file, path) in files {
        let named = |why: String| format!("'{}' cannot be copied for it: {why}", path.display());
        let copied = copy(file, &directory.path().join(&path), left);
        let copied = copied.map_err(|error| named(error.to_string()))?;
        left = left.checked_sub(copied).ok_or_else(|| {
            named(format!("all have more than {} MiB: grant its directory", FILES_BYTES_MAX >> 20))
        })?;
    }
    Ok(directory)
}

/// Copies at most one byte more than is left, which tells that it was too much.
fn copy(file: File, to: &Path, left: u64) -> io::Result<u64> {
    if let Some(above) = to.parent() {
        fs::create_dir_all(above)?;
    }
    io::copy(&mut file.take(left + 1), &mut File::create(to)?)
}
