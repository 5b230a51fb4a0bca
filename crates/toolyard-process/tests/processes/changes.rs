//! What may not be written is not changed either by the calls that open nothing: modes, times, sizes, attributes, owners,
//! names.
//!
//! Without the confinement the same calls change all of it.

use super::{
    alone,
    compiled::compiled,
    confined,
    containments::helper,
    yard::{Yard, run},
};
use rustix::fs::XattrFlags;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};
use toolyard_process::{Confinement, End, Program, Report};

/// All that is known of a file. The time of its last change tells of every change of anything.
#[derive(Debug, PartialEq, Eq)]
struct State {
    content: Option<Vec<u8>>,
    mode: u32,
    owner: (u32, u32),
    links: u64,
    size: u64,
    node: u64,
    written: (i64, i64),
    changed: (i64, i64),
    attributes: Vec<u8>,
}

impl State {
    fn of(path: &Path) -> Self {
        let is = fs::symlink_metadata(path).unwrap();
        let mut names = vec![0; 4096];
        let length = rustix::fs::llistxattr(path, &mut names).unwrap();
        names.truncate(length);
        Self {
            content: is.is_file().then(|| fs::read(path).unwrap()),
            mode: is.mode(),
            owner: (is.uid(), is.gid()),
            links: is.nlink(),
            size: is.size(),
            node: is.ino(),
            written: (is.mtime(), is.mtime_nsec()),
            changed: (is.ctime(), is.ctime_nsec()),
            attributes: names,
        }
    }
}

/// A directory with files, and what is known of all of them.
struct Files {
    yard: Yard,
    before: BTreeMap<PathBuf, State>,
}

impl Files {
    fn new() -> Self {
        let yard = Yard::new();
        for name in ["file", "moved", "removed", "replaced"] {
            let path = yard.path().join(name);
            fs::write(&path, "untouched").unwrap();
            rustix::fs::setxattr(&path, "user.a", b"a", XattrFlags::empty()).unwrap();
        }
        fs::create_dir(yard.path().join("directory")).unwrap();
        let before = found(&yard);
        Self { yard, before }
    }

    fn are_as_before(&self, text: &str) {
        assert_eq!(found(&self.yard), self.before, "{text}");
    }
}

fn found(yard: &Yard) -> BTreeMap<PathBuf, State> {
    let entries = fs::read_dir(yard.path()).unwrap().map(|entry| entry.unwrap().path());
    entries.chain([yard.path()]).map(|path| (path.clone(), State::of(&path))).collect()
}

/// Tries to change these files from a yard that may be written; returns what was said of each way, `None` where the
/// program cannot be compiled.
async fn tried(
    files: &Files,
    part: &str,
    confinement: impl FnOnce(&Path) -> Option<Confinement>,
) -> Option<String> {
    let yard = Yard::new();
    for name in ["mine", "over", "exchanged"] {
        fs::write(yard.path().join(name), "mine").unwrap();
    }
    let program = Program::new(compiled(&yard, "changes.c", "changes")?).arg(files.yard.path()).arg(part);
    let program = program.directory(yard.path());
    let program = match confinement(&yard.path()) {
        Some(confinement) => program.confined(confinement),
        None => program,
    };
    let (text, report) = run(program, &helper()).await;
    assert!(matches!(report, Report::Ran(ran) if ran.end == Some(End::Exited(0))), "{report:?}: {text}");
    Some(text)
}

fn to_read(confinement: Confinement, files: &Files) -> Confinement {
    let path = files.yard.path();
    confinement.grant(File::open(&path).unwrap(), &path, false)
}

/// SB-4: in the sandbox *process* neither what is outside is changed, which is not there, nor what is granted for reading.
#[tokio::test]
async fn a_process_changes_nothing_that_it_may_not_write() {
    if confined::is_missing().await {
        return;
    }
    let (outside, readable) = (Files::new(), Files::new());
    let Some(text) = tried(&outside, "all", |path| Some(confined::within(path, true))).await else { return };
    outside.are_as_before(&text);
    assert!(!text.contains(": done"), "{text}");
    let confinement = |path: &Path| Some(to_read(confined::within(path, true), &readable));
    let text = tried(&readable, "all", confinement).await.unwrap();
    readable.are_as_before(&text);
    assert!(!text.contains(": done"), "{text}");
    assert!(text.contains("chmod: EROFS\n") && text.contains("truncate: EROFS\n"), "{text}");
}

/// SB-4: nor in the sandbox *landlock*, but for modes and times, which it is known to lack.
#[tokio::test]
async fn nothing_under_landlock_changes_what_it_may_not_write() {
    if alone::is_missing() {
        return;
    }
    let (outside, readable) = (Files::new(), Files::new());
    let Some(text) = tried(&outside, "some", |path| Some(alone::within(path, true))).await else { return };
    outside.are_as_before(&text);
    assert!(!text.contains(": done"), "{text}");
    let confinement = |path: &Path| Some(to_read(alone::within(path, true), &readable));
    let text = tried(&readable, "some", confinement).await.unwrap();
    readable.are_as_before(&text);
    assert!(!text.contains(": done"), "{text}");
}

/// Each of these calls changes files without a confinement.
#[tokio::test]
async fn what_is_not_confined_changes_them() {
    let files = Files::new();
    let Some(text) = tried(&files, "all", |_| None).await else { return };
    let failed: Vec<&str> = text.lines().filter(|line| !line.ends_with(": done")).collect();
    assert!(failed.is_empty() && text.lines().count() == 36, "{text}");
    assert!(!files.yard.has("file") && !files.yard.has("removed") && !files.yard.has("directory"));
    let now = State::of(&files.yard.path().join("beside"));
    let before = &files.before[&files.yard.path().join("file")];
    assert_ne!((now.mode, now.size, now.written), (before.mode, before.size, before.written));
    assert_ne!(
        (now.links, now.attributes, now.changed),
        (before.links, before.attributes.clone(), before.changed)
    );
}
