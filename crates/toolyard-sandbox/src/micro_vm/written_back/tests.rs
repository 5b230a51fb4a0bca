//! Changes that no honest machine tells of: each is refused by name, and the workspace stays as it is.

use super::*;
use crate::micro_vm::granted::Granted;
use std::{fs, os::unix::fs::symlink};
use toolyard_core::Command;

/// A workspace of which all was copied, and what came into it afterwards.
struct Yard {
    outside: tempfile::TempDir,
    root: PathBuf,
    workspace: Workspace,
    copied: Copied,
}

impl Yard {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(root.join("sent")).unwrap();
        fs::create_dir_all(root.join(".git/hooks")).unwrap();
        fs::write(root.join("file"), "text").unwrap();
        let handles = vec![(File::open(&root).unwrap(), PathBuf::new())];
        let granted = Granted { root: Some(root.clone()), handles, writable: vec![PathBuf::new()] };
        let copied = Copied::of(granted, &Command::new("/bin/true"), 1 << 20).unwrap();
        fs::create_dir(root.join("later")).unwrap();
        fs::write(root.join("late"), "").unwrap();
        fs::write(outside.path().join("secret"), "text").unwrap();
        symlink("../secret", root.join("out")).unwrap();
        symlink(".git/hooks", root.join("in")).unwrap();
        let workspace = Workspace::open(&root).unwrap();
        Self { outside, root, workspace, copied }
    }

    fn write(&self, changes: Vec<Change>) -> Result<(), String> {
        let kept = [self.root.join(".git/hooks")];
        Back { workspace: &self.workspace, copied: &self.copied, kept: &kept }.write(changes, || true)
    }

    fn removed(&self, path: &str) -> Result<(), String> {
        self.write(vec![Change::Removed(self.root.join(path))])
    }

    fn made(&self, path: &str) -> Result<(), String> {
        self.write(vec![Change::File { path: self.root.join(path), content: b"evil".to_vec() }])
    }

    /// All paths below the place of the workspace, in order.
    fn all(&self) -> Vec<PathBuf> {
        let mut left = vec![self.outside.path().to_owned()];
        let mut found = Vec::new();
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                found.push(entry.path());
                left.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
            }
        }
        found.sort();
        found
    }
}

/// SB-4: only what was sent is removed, and as long as it is what was sent.
#[test]
fn only_what_was_sent_is_removed() {
    let yard = Yard::new();
    let before = yard.all();
    for (path, why) in [
        ("later", "it was not given to the machine"),
        ("late", "it was not given to the machine"),
        ("never", "it was not given to the machine"),
        ("out", "it was not given to the machine"),
        ("in", "it was not given to the machine"),
        ("../secret", "it was not given to the machine"),
        ("sent/../later", "it was not given to the machine"),
        (".git/hooks", "no program writes it"),
    ] {
        let said = yard.removed(path).unwrap_err();
        assert!(said.contains(why), "{path}: {said}");
    }
    for (path, is_directory) in [("file", true), ("sent", false)] {
        let at = yard.root.join(path);
        if is_directory {
            fs::remove_file(&at).unwrap();
            fs::create_dir(&at).unwrap();
        } else {
            fs::remove_dir(&at).unwrap();
            fs::write(&at, "").unwrap();
        }
        let said = yard.removed(path).unwrap_err();
        assert!(said.contains(CHANGED), "{path}: {said}");
    }
    assert_eq!(yard.all(), before);
    let yard = Yard::new();
    yard.removed("sent").unwrap();
    yard.removed("file").unwrap();
    assert_eq!(yard.all().len(), before.len() - 2);
}

/// SB-4, SB-11: nothing is written outside, through a link, over what was not sent, or where nothing writes.
#[test]
fn nothing_is_written_elsewhere() {
    let yard = Yard::new();
    let before = yard.all();
    for (path, why) in [
        ("../secret", "it is not a plain relative path"),
        ("../new", "it is not a plain relative path"),
        ("sent/../../new", "it is not a plain relative path"),
        ("/etc/toolyard-new", "it lies outside of the workspace"),
        ("out", CHANGED),
        ("in/post-commit", CHANGED),
        ("late", CHANGED),
        ("later", CHANGED),
        (".git/hooks/post-commit", "no program writes it"),
    ] {
        let said = yard.made(path).unwrap_err();
        assert!(said.contains(why), "{path}: {said}");
    }
    for path in ["../new", "/etc/toolyard-new", "out/new", "in/new", "late/new", ".git/hooks/new"] {
        let said = yard.write(vec![Change::Directory(yard.root.join(path))]).unwrap_err();
        assert!(said.starts_with("not written back: "), "{path}: {said}");
    }
    assert_eq!(fs::read_to_string(yard.outside.path().join("secret")).unwrap(), "text");
    assert_eq!(fs::read_to_string(yard.root.join("late")).unwrap(), "");
    assert_eq!(yard.all(), before);
    yard.made("new").unwrap();
    yard.made("file").unwrap();
    assert_eq!(fs::read_to_string(yard.root.join("file")).unwrap(), "evil");
}
