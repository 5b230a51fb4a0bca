//! A program of C, with a library of its own between it and the sandbox.

use crate::{load, run};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;
use toolyard_test_modules::{compiled, component};
use toolyard_wasm::{Directory, End, Ended, Limit, Limits, Module, Run};

/// The program in both forms; `None` without a compiler.
fn program() -> Option<[Module; 2]> {
    let command = compiled()?;
    Some([load(&command), load(&component(&command))])
}

fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    for directory in ["r", "rw"] {
        fs::create_dir(place.path().join(directory)).unwrap();
        fs::write(place.path().join(directory).join("file"), "one two  three\n").unwrap();
    }
    fs::write(place.path().join("secret"), "outside").unwrap();
    place
}

/// A run with the directory `r` for reading and `rw` for both, under these names.
fn given(place: &Path, arguments: &[&str]) -> Run {
    let mut limits = Limits::default();
    limits.wall_time = Some(Duration::from_secs(600));
    Run::new()
        .arguments(arguments.iter().copied())
        .directory(Directory::at(place.join("r"), "r"))
        .directory(Directory::at(place.join("rw"), "rw").writable())
        .limits(limits)
}

async fn said(module: &Module, place: &Path, arguments: &[&str]) -> (End, String) {
    let ended = run(module, given(place, arguments)).await;
    (ended.end, ended.output.into_text())
}

/// SB-2, SM-2: it reads its input and its files by the names they have in the workspace.
#[tokio::test]
async fn it_reads_its_input_and_its_files() {
    let Some(modules) = program() else { return };
    let place = place();
    for module in modules {
        let ended = run(&module, Run::new().input("a b\nc ")).await;
        assert_eq!((ended.end, ended.output.into_text()), (End::Exited(0), "3\n".to_owned()));
        for path in ["r/file", "rw/file"] {
            let expect = (End::Exited(0), "3\n".to_owned());
            assert_eq!(said(&module, place.path(), &["count", path]).await, expect, "{path}");
        }
        assert_eq!(said(&module, place.path(), &["list", "r"]).await.1, "file\n");
        assert_eq!(run(&module, Run::new().arguments(["environment"])).await.output.into_text(), "");
    }
}

/// SM-2: everything that changes a file is refused where reading is granted, by every operation that there is.
#[tokio::test]
async fn nothing_is_changed_where_reading_is_granted() {
    let Some(modules) = program() else { return };
    let place = place();
    let tries: &[&[&str]] = &[
        &["write", "r/file"],
        &["write", "r/made"],
        &["truncate", "r/file"],
        &["touch", "r/file"],
        &["remove", "r/file"],
        &["rename", "r/file", "rw/gone"],
        &["rename", "rw/file", "r/file"],
        &["link", "r/file", "rw/alias"],
        &["link", "rw/file", "r/alias"],
        &["symlink", "file", "r/alias"],
    ];
    let before = fs::metadata(place.path().join("r/file")).unwrap().modified().unwrap();
    for module in modules {
        for arguments in tries {
            let (end, output) = said(&module, place.path(), arguments).await;
            assert_eq!(end, End::Exited(1), "{arguments:?}: {output}");
        }
    }
    assert_eq!(fs::read_to_string(place.path().join("r/file")).unwrap(), "one two  three\n");
    assert_eq!(fs::read_dir(place.path().join("r")).unwrap().count(), 1);
    assert_eq!(fs::metadata(place.path().join("r/file")).unwrap().modified().unwrap(), before);
    assert!(!place.path().join("rw/alias").exists());
}

/// SM-2: nothing outside is reached, also not by a link that the program makes itself.
#[tokio::test]
async fn nothing_outside_is_reached() {
    let Some(modules) = program() else { return };
    let place = place();
    for module in modules {
        said(&module, place.path(), &["symlink", "../secret", "rw/near"]).await;
        said(&module, place.path(), &["symlink", "/etc/passwd", "rw/far"]).await;
        for path in ["secret", "rw/../secret", "rw/near", "rw/far", "/etc/passwd", "/proc/self/maps", "."] {
            let (end, output) = said(&module, place.path(), &["read", path]).await;
            assert_eq!(end, End::Exited(1), "{path}: {output}");
        }
        for arguments in [["link", "../secret", "rw/alias"], ["rename", "rw/../secret", "rw/alias"]] {
            assert_eq!(said(&module, place.path(), &arguments).await.0, End::Exited(1), "{arguments:?}");
        }
    }
    assert_eq!(fs::read_to_string(place.path().join("secret")).unwrap(), "outside");
}

/// SB-2, SB-8: what ends it is told as what it is.
#[tokio::test]
async fn its_ends_are_told() {
    let Some([module, component]) = program() else { return };
    let place = place();
    let memory = |run: Run| {
        let mut limits = Limits::default();
        limits.memory = Some(4 << 20);
        run.limits(limits)
    };
    for module in [&module, &component] {
        let ends = async |arguments: &[&str]| run(module, given(place.path(), arguments)).await.end;
        // Its stack is a part of its memory, and ends before that of its functions.
        assert!(matches!(ends(&["recurse"]).await, End::Trapped(_)));
        assert!(matches!(ends(&["abort"]).await, End::Trapped(_)));
        assert_eq!(ends(&["flood"]).await, End::Limit(Limit::Output));
        let Ended { end, refused, errors, .. } = run(module, memory(Run::new().arguments(["hog"]))).await;
        // It noticed, and failed by itself.
        assert!(matches!(end, End::Exited(code) if code != 0), "{end:?}");
        assert_eq!((refused, errors.into_text()), (Some(Limit::Memory), "no memory\n".to_owned()));
    }
    assert_eq!(said(&module, place.path(), &["busy"]).await.0, End::Exited(75));
    assert_eq!(said(&module, place.path(), &["descriptors", "r/file"]).await.0, End::Limit(Limit::OpenFiles));
}
