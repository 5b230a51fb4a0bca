//! Files that are written beside the results: opened before anything runs, so that an error is told in time.

use crate::{
    error::Error,
    event_file::{ProtectedFile, lock},
    identity::Identity,
};
use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// Opens a file for writing, readable by its owner only if it is new. What it holds stays until it is written over.
///
/// # Errors
/// [`Error::Usage`] if the name leads to a protected file; [`Error::Write`] if it cannot be opened.
pub(crate) fn open(option: &str, path: &Path, protected: &[ProtectedFile]) -> Result<File, Error> {
    let known = Identity::of_path(path);
    if let Some(file) = protected.iter().find(|file| Some(&file.identity) == known.as_ref()) {
        return Err(file.refusal(option, path));
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    lock::private(&mut options);
    options.open(path).map_err(|error| failed(path, error))
}

/// The error of a write to this file.
pub(crate) fn failed(path: &Path, error: io::Error) -> Error {
    Error::Write { what: path.display().to_string(), error }
}
