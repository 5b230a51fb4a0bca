//! Finds the real inputs.

use std::path::PathBuf;

/// The path of a file of real inputs, under `TOOLYARD_DATA` or next to the checkout.
///
/// Returns `None` and prints a line to stderr on a machine without them.
///
/// # Panics
/// If the file is missing and `CI=true`, because CI must have the inputs.
pub fn data_file(name: &str) -> Option<PathBuf> {
    let default = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let file = std::env::var_os("TOOLYARD_DATA").map_or_else(default, PathBuf::from).join(name);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is missing; set TOOLYARD_DATA", file.display());
    eprintln!("skipped: {} not found; set TOOLYARD_DATA to run this test", file.display());
    None
}
