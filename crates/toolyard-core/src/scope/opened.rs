//! What stands at a path of a workspace, by handle.

use std::{fs::File, path::PathBuf};

/// What stands at a path of a workspace, by handles that stay what they are whatever becomes of the names (SM-2).
#[derive(Debug)]
#[non_exhaustive]
pub enum Opened {
    /// A directory.
    Directory(File),
    /// A regular file, opened for reading.
    File(File),
    /// Nothing yet.
    Missing {
        /// The nearest directory above it that exists.
        nearest: File,
        /// The rest of the path below that. Whoever may use the path may use this name in the directory, and no other.
        name: PathBuf,
    },
    /// Something that is reached only through a symbolic link, and so by another name.
    Link,
}
