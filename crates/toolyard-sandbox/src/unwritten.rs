//! Paths that no program writes, in sandboxes that give files by their own means (SB-11).

use std::path::{Path, PathBuf};
use toolyard_process::git_files;

/// The paths in a workspace that git would be led by; none if it is no repository.
pub(crate) fn of_git(root: &Path) -> Vec<PathBuf> {
    match root.join(".git").symlink_metadata() {
        Ok(_) => git_files(root).collect(),
        Err(_) => Vec::new(),
    }
}

/// The path with all links followed that exist by now, so that it compares with the place of a directory.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = at.canonicalize() {
            return rest.iter().rev().fold(found, |found, name| found.join(name));
        }
        let (Some(above), Some(name)) = (at.parent(), at.file_name()) else { return path.to_owned() };
        rest.push(name);
        at = above;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-11: a path that does not exist yet is resolved as far as it does.
    #[cfg(unix)]
    #[test]
    fn a_path_is_resolved_as_far_as_it_exists() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("link")).unwrap();
        assert_eq!(resolved(&root.join("link/a/b")), root.join("real/a/b"));
        assert_eq!(resolved(&root.join("real")), root.join("real"));
        assert!(of_git(&root).is_empty());
        std::fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(of_git(&root), git_files(&root).collect::<Vec<_>>());
    }
}
