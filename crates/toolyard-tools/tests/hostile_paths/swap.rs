//! Names that switch between inside and outside as fast as possible.

use super::arena::{Arena, CANARY};
use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};
use toolyard_tools::{Workspace, WorkspaceError};

const READS: usize = 10_000;
const WRITES: usize = 1_000;

/// The results of the operations while the name was being swapped.
#[derive(Debug, Default)]
struct Met {
    inside: usize,
    refused: usize,
    missing: usize,
    other: usize,
}

impl Met {
    fn count<T>(&mut self, result: &Result<T, WorkspaceError>) {
        match result {
            Ok(_) => self.inside += 1,
            Err(WorkspaceError::Escape(_)) => self.refused += 1,
            Err(WorkspaceError::NotFound { .. }) => self.missing += 1,
            Err(_) => self.other += 1,
        }
    }
}

/// Ends the swapping thread, even if an assertion fails in the other one.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads and writes `path` while another thread calls `swap`, which leaves the name leading inside. The thread
/// swaps without a pause, except that after the first swap it waits until an operation has found the name inside,
/// which on a busy machine might otherwise never happen.
fn race(what: &str, workspace: &Workspace, path: &str, write_path: &str, swap: impl Fn() + Sync) {
    let (over, met, swaps) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
    let (mut reads, mut writes) = (Met::default(), Met::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                swap();
                swaps.fetch_add(1, Ordering::Relaxed);
                while !met.load(Ordering::Relaxed) && !over.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
            }
        });
        let _stop = Stop(&over);
        for round in 0..READS {
            let read = workspace.read(path);
            assert!(!format!("{read:?}").contains(CANARY), "escaped: {read:?}");
            reads.count(&read);
            met.fetch_or(read.is_ok(), Ordering::Relaxed);
            if round % (READS / WRITES) == 0 {
                writes.count(&workspace.write(write_path, "inside"));
                writes.count(&workspace.append(write_path, ""));
            }
        }
    });
    let reached = reads.inside + writes.inside;
    assert!(reached > 0, "nothing was ever reached while the name led inside");
    println!("{what}: {swaps:?} swaps; reads {reads:?}; writes and appends {writes:?}; 0 escapes");
}

/// Replaces `name` by a link to `target`, in one step.
fn relink(root: &Path, target: &str, name: &str) {
    let fresh = root.join(".swap");
    symlink(target, &fresh).unwrap();
    fs::rename(&fresh, root.join(name)).unwrap();
}

#[test]
fn a_directory_link_swapped_in_and_out_never_leads_out() {
    let arena = Arena::new();
    let root = arena.root();
    fs::write(root.join("dir/canary.txt"), "inside").unwrap();
    relink(&root, "dir", "way");
    race("directory link", &arena.workspace, "way/canary.txt", "way/written.txt", || {
        relink(&root, "../outside", "way");
        relink(&root, "dir", "way");
    });
    arena.assert_untouched();
}

#[test]
fn a_file_link_swapped_in_and_out_never_leads_out() {
    let arena = Arena::new();
    let root = arena.root();
    relink(&root, "dir/file.txt", "file");
    race("file link", &arena.workspace, "file", "file", || {
        relink(&root, "../canary.txt", "file");
        relink(&root, "dir/file.txt", "file");
    });
    arena.assert_untouched();
}

#[test]
fn a_real_directory_swapped_for_a_link_out_never_leads_out() {
    let arena = Arena::new();
    let root = arena.root();
    let (real, aside) = (root.join("real"), root.join("aside"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("canary.txt"), "inside").unwrap();
    race("directory", &arena.workspace, "real/canary.txt", "real/canary.txt", || {
        fs::rename(&real, &aside).unwrap();
        // A write may have recreated the directory by now; then no link is planted this time.
        let _ = symlink("../outside", &real);
        while fs::rename(&aside, &real).is_err() {
            let _ = fs::remove_file(&real).or_else(|_| fs::remove_dir_all(&real));
        }
    });
    arena.assert_untouched();
}

#[test]
fn a_file_swapped_for_a_pipe_never_keeps_a_reader_waiting() {
    let arena = Arena::new();
    let root = arena.root();
    let (pipe, plain, name) = (root.join("pipe"), root.join("plain"), root.join("name"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::write(&plain, "inside").unwrap();
    let put = |from: &Path| {
        let fresh = root.join(".swap");
        fs::hard_link(from, &fresh).unwrap();
        fs::rename(&fresh, &name).unwrap();
        // A rename between two hard links of one file does nothing and leaves both.
        let _ = fs::remove_file(&fresh);
    };
    put(&plain);
    race("pipe", &arena.workspace, "name", "name", || {
        put(&pipe);
        put(&plain);
    });
    arena.assert_untouched();
}
