//! The server `git`, which runs concurrent calls concurrently: without an order its commits would lose each other.

use crate::real::{place, yard::Yard};
use serde_json::json;
use std::{fs, path::Path, process::Command};
use toolyard::Call;

fn git(dir: &Path, args: &[&str]) -> String {
    let done = Command::new("git").arg("-C").arg(dir).args(args).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// CL-3, CL-4: forty additions and forty commits sent together leave every commit, in order, and an intact repository.
#[tokio::test]
async fn commits_that_come_together_are_all_there() {
    const COMMITS: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = place::python("git", &["--repository", dir.path().to_str().unwrap()]) else { return };
    git(dir.path(), &["init", "--quiet"]);
    git(dir.path(), &["config", "user.name", "Test"]);
    git(dir.path(), &["config", "user.email", "test@example.com"]);
    git(dir.path(), &["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    (0..COMMITS).for_each(|n| fs::write(dir.path().join(format!("{n}.txt")), n.to_string()).unwrap());
    let yard = Yard::open(vec![server]).await;
    let repo = dir.path().to_str().unwrap();
    let calls = (0..COMMITS).flat_map(|n| {
        let add = json!({"repo_path": repo, "files": [format!("{n}.txt")]});
        let commit = json!({"repo_path": repo, "message": format!("commit {n}")});
        [
            Call::new(format!("a{n}"), "git__git_add", add),
            Call::new(format!("c{n}"), "git__git_commit", commit),
        ]
    });
    for outcome in yard.all(calls.collect()).await {
        outcome.status.unwrap();
    }
    git(dir.path(), &["fsck", "--strict"]);
    assert_eq!(git(dir.path(), &["status", "--porcelain"]), "");
    let subjects = git(dir.path(), &["log", "--reverse", "--format=%s"]);
    let wanted = (0..COMMITS).map(|n| format!("commit {n}"));
    assert_eq!(subjects.lines().skip(1).map(str::to_owned).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    yard.servers.shutdown().await;
}
