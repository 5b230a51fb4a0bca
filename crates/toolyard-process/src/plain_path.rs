//! Paths that say by their name alone where they lead.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

/// An absolute path without `..` that leads to the same place. Its last part stays as it is: a program may be a link that
/// means something by its place.
///
/// # Errors
/// What is above a `..` cannot be found.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use toolyard_process::plain_path;
/// let here = std::env::current_dir()?;
/// assert_eq!(plain_path(Path::new("a/b"))?, here.join("a/b"));
/// assert_eq!(plain_path(Path::new("../b"))?, here.canonicalize()?.parent().unwrap().join("b"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn plain_path(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if !path.components().any(|part| part == Component::ParentDir) {
        return Ok(path);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => path.canonicalize(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::symlink};

    /// A program that is a link by its last part stays one: what it does may follow from where it lies.
    #[test]
    fn a_plain_path_leads_where_a_path_leads_up_to_its_last_part() {
        let place = tempfile::tempdir().unwrap();
        let lies = place.path().canonicalize().unwrap().join("lies");
        let link = lies.with_file_name("link");
        fs::create_dir_all(lies.join("a")).unwrap();
        symlink(&lies, &link).unwrap();
        symlink("/bin/sh", lies.join("sh")).unwrap();
        assert_eq!(plain_path(&link.join("a/../sh")).unwrap(), lies.join("sh"));
        assert_eq!(plain_path(&link.join("sh")).unwrap(), link.join("sh"));
        assert_eq!(plain_path(&link.join("a/..")).unwrap(), lies);
    }
}
