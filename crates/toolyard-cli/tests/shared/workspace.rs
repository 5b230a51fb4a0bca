//! The sample workspace: a copy for each run, since runs side by side would write the same files.

use super::{child::root, place::dir};
use std::{fs, path::PathBuf};

/// A fresh copy in a directory of this name.
pub(crate) fn workspace(name: &str) -> PathBuf {
    let to = dir(name);
    fs::create_dir_all(to.join("notes")).unwrap();
    for file in ["README.md", "plants.csv", "notes/watering.md", "notes/pests.md"] {
        fs::copy(root().join("examples/workspace").join(file), to.join(file)).unwrap();
    }
    to
}
