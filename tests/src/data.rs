//! Where real inputs are.

use std::path::PathBuf;

/// The path of a file of real inputs, under `TOOLYARD_DATA` or beside the checkout.
///
/// `None`, with a line on stderr, on a machine that has none.
///
/// # Panics
/// With `CI=true`, where the inputs have to be.
pub fn data_file(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let file = std::env::var_os("TOOLYARD_DATA").map_or_else(beside, PathBuf::from).join(name);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{} is missing; set TOOLYARD_DATA", file.display());
    eprintln!("skipped: {} is not here; set TOOLYARD_DATA to run this test", file.display());
    None
}
