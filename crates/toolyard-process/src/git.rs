//! What a sandbox keeps from being written in a repository.

use std::path::{Path, PathBuf};

/// What git runs, or reads what to run from, in a repository; and what says where that is, in a work tree of another.
const GIT: [&str; 4] = [".git/hooks", ".git/config", ".git/config.worktree", ".git/commondir"];

/// The paths of a repository by which whoever writes them decides what git runs, on the host too.
pub fn git_files(root: &Path) -> impl Iterator<Item = PathBuf> {
    let git = root.join(".git");
    // In a work tree of another repository it is a file that says where that lies.
    let is_file = git.symlink_metadata().is_ok_and(|about| about.is_file());
    let all = GIT.into_iter().map(|path| root.join(path));
    is_file.then_some(git).into_iter().chain(all)
}
