//! A workspace in hostile surroundings, and the proof that these stayed unchanged.

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use toolyard_core::{ContextParts, Resources, ToolContext};
use toolyard_tools::{Workspace, WorkspaceError};

/// The content of files outside, and of no other file.
pub(crate) const CANARY: &str = "CANARY-6f1e0b7d";

pub(crate) struct Arena {
    dir: TempDir,
    pub(crate) workspace: Workspace,
    before: BTreeMap<PathBuf, String>,
    passwd: String,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("ws");
        for made in ["outside", "ws/dir", "ws/deep"] {
            fs::create_dir_all(dir.path().join(made)).unwrap();
        }
        fs::write(dir.path().join("canary.txt"), CANARY).unwrap();
        fs::write(dir.path().join("outside/canary.txt"), CANARY).unwrap();
        fs::write(root.join("dir/file.txt"), "inside").unwrap();
        plant_links(&root);
        Self {
            workspace: Workspace::open(&root).unwrap(),
            before: snapshot(dir.path()),
            passwd: fs::read_to_string("/etc/passwd").unwrap(),
            dir,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("ws")
    }

    pub(crate) fn context(&self) -> ToolContext {
        let mut parts = ContextParts::detached("hostile");
        parts.resources = Arc::new(Resources::new().with(self.workspace.clone()));
        ToolContext::new(parts)
    }

    /// Asserts that the result for `path` contains nothing from outside.
    pub(crate) fn assert_innocent(&self, path: &str, result: &str) {
        assert!(!result.contains(CANARY), "{path:?} read the canary: {result}");
        let passwd_line = self.passwd.lines().next().unwrap();
        assert!(!result.contains(passwd_line), "{path:?} read /etc/passwd");
    }

    /// Asserts that everything beside the workspace is unchanged.
    pub(crate) fn assert_untouched(&self) {
        assert_eq!(snapshot(self.dir.path()), self.before);
        assert_eq!(fs::read_to_string("/etc/passwd").unwrap(), self.passwd);
    }
}

fn plant_links(root: &Path) {
    let links = [
        ("../canary.txt", "canary"),
        ("/etc", "etc"),
        ("..", "up"),
        ("../outside", "outside"),
        ("up", "chain"),
        ("../..", "deep/up2"),
        ("loop", "loop"),
        ("pong", "ping"),
        ("ping", "pong"),
        (".", "self"),
        ("dir", "in"),
    ];
    for (target, link) in links {
        symlink(target, root.join(link)).unwrap();
    }
    symlink(root.with_file_name("canary.txt"), root.join("canary_absolute")).unwrap();
}

/// Every path below `dir` with its content, except for the workspace. Links are not followed.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let metadata = entry.metadata().unwrap();
            let content = metadata.is_file().then(|| fs::read_to_string(&path).unwrap());
            let changed = (entry.file_name() != "ws").then(|| metadata.modified().unwrap());
            found.insert(path.clone(), format!("{:?} {changed:?} {content:?}", metadata.file_type()));
            if metadata.is_dir() && entry.file_name() != "ws" {
                open.push(path);
            }
        }
    }
    found
}

/// How the operations ended.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) refused: usize,
    pub(crate) done: usize,
    pub(crate) failed: usize,
    pub(crate) by_system: usize,
}

impl Tally {
    pub(crate) fn count(&mut self, path: &str, result: &Result<String, WorkspaceError>) {
        match result {
            Ok(_) => self.done += 1,
            Err(WorkspaceError::Escape(escape)) => {
                assert_eq!(escape.to_string(), format!("Path '{path}' escapes workspace boundary"));
                self.refused += 1;
            }
            Err(WorkspaceError::Io { .. }) => self.by_system += 1,
            Err(_) => self.failed += 1,
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { refused, done, failed, by_system } = self;
        write!(f, "{refused} refused as escapes, {done} done inside, {failed} failed otherwise, ")?;
        write!(f, "{by_system} by the operating system, 0 escapes")
    }
}
