//! What no program writes, although it may lie in what is granted (SB-11).

use std::path::{Path, PathBuf};
use toolyard_core::ToolContext;
use toolyard_process::git_files;
use toolyard_tools::Workspace;

/// What a sandbox keeps from being written.
#[derive(Debug, Clone)]
pub(crate) struct Unwritten {
    paths: Vec<PathBuf>,
    keeps_git: bool,
}

impl Default for Unwritten {
    fn default() -> Self {
        Self { paths: Vec::new(), keeps_git: true }
    }
}

impl Unwritten {
    /// Adds paths.
    pub(crate) fn add<P: Into<PathBuf>>(&mut self, paths: impl IntoIterator<Item = P>) {
        self.paths.extend(paths.into_iter().map(Into::into));
    }

    /// Sets whether it is also what git would be led by.
    pub(crate) fn keep_git(&mut self, keeps: bool) {
        self.keeps_git = keeps;
    }

    /// All of it for the calls of this context in a workspace at `root`, with what the [`Workspace`] guards.
    pub(crate) fn paths(&self, cx: &ToolContext, root: Option<&Path>) -> Vec<PathBuf> {
        let guarded = cx.resource::<Workspace>().map(|workspace| workspace.guarded());
        let git = root.filter(|_| self.keeps_git).map(of_git);
        let all = self.paths.iter().cloned().chain(guarded.into_iter().flatten());
        all.chain(git.into_iter().flatten()).collect()
    }

    /// The same with all links followed, so that they compare with the places of directories: for sandboxes that give
    /// files by their own means.
    #[cfg(any(feature = "wasm", all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64")))]
    pub(crate) fn resolved(&self, cx: &ToolContext, root: Option<&Path>) -> Vec<PathBuf> {
        self.paths(cx, root).iter().map(|path| resolved(path)).collect()
    }
}

/// The paths in a workspace that git would be led by; none if it is no repository.
fn of_git(root: &Path) -> Vec<PathBuf> {
    match root.join(".git").symlink_metadata() {
        Ok(_) => git_files(root).collect(),
        Err(_) => Vec::new(),
    }
}

/// The path with all links followed that exist by now.
#[cfg(any(feature = "wasm", all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64")))]
fn resolved(path: &Path) -> PathBuf {
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

#[cfg(all(
    test,
    any(feature = "wasm", all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))
))]
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
