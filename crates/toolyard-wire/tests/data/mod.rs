//! The recorded data that tests read.

use serde_json::Value;
use std::{env, fs, path::PathBuf};

/// The JSON lines of a file under `TOOLYARD_DATA`; `None`, with a note on stderr, if it is absent.
///
/// # Panics
/// If it is absent under `CI=true`: a test that is skipped there would be skipped for ever.
pub(crate) fn lines(file: &str) -> Option<Vec<Value>> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let root = env::var_os("TOOLYARD_DATA").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let path = root.join(file);
    match fs::read_to_string(&path) {
        Ok(text) => Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()),
        Err(error) => {
            let ci = env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!ci, "no data at {}: {error}; set TOOLYARD_DATA", path.display());
            eprintln!("skipped: no data at {} ({error}); set TOOLYARD_DATA", path.display());
            None
        }
    }
}
