use super::*;
use crate::WorkspaceError;
use std::fs;
use tempfile::TempDir;

fn workspace() -> (TempDir, Workspace) {
    let dir = tempfile::tempdir().unwrap();
    let workspace = Workspace::open(dir.path()).unwrap();
    (dir, workspace)
}

fn names(workspace: &Workspace, path: &str) -> Vec<String> {
    let entries = workspace.list(path).unwrap().entries;
    entries.into_iter().map(|entry| entry.name).collect()
}

/// PO-1b: a write creates the directories on its way, and no others.
#[test]
fn a_name_that_is_gone_up_from_is_not_made() {
    let (dir, workspace) = workspace();
    workspace.write("docs/a", "x").unwrap();
    for path in ["junk/../docs/a", "junk/../docs/new/a", "docs/junk/../../docs/new/a"] {
        let error = workspace.write(path, "y").unwrap_err();
        assert!(matches!(error, WorkspaceError::NotFound { .. }), "{path}: {error}");
    }
    assert_eq!((names(&workspace, "."), names(&workspace, "docs")), (vec!["docs".into()], vec!["a".into()]));
    workspace.write("docs/../out/new/a", "z").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("out/new/a")).unwrap(), "z");
}

#[test]
fn what_is_written_is_read_back() {
    let (_dir, workspace) = workspace();
    workspace.write("a/b/c.txt", "one\n").unwrap();
    workspace.append("a/b/c.txt", "two\n").unwrap();
    workspace.append("a/new.txt", "three").unwrap();
    assert_eq!(workspace.read("a/b/c.txt").unwrap(), "one\ntwo\n");
    assert_eq!(workspace.read_bytes("a/new.txt").unwrap(), b"three");
    assert_eq!(workspace.patch("a/new.txt", "ree", "irty").unwrap(), 6);
    assert_eq!(workspace.read("./a//b/../new.txt").unwrap(), "thirty");
    assert_eq!(names(&workspace, "a"), ["b", "new.txt"]);
}

#[test]
fn an_absolute_path_passes_inside_the_root_only() {
    let (dir, workspace) = workspace();
    workspace.write(dir.path().join("x"), "in").unwrap();
    assert_eq!(workspace.read("x").unwrap(), "in");
    let outside = dir.path().with_file_name("other");
    assert!(matches!(workspace.read(outside), Err(WorkspaceError::Escape(_))));
    assert!(matches!(workspace.read(dir.path().join("../x")), Err(WorkspaceError::Escape(_))));
    // Prefixes are compared by component: `/tmp/ab` is not inside `/tmp/a`.
    let mut beside = dir.path().as_os_str().to_owned();
    beside.push("b");
    assert!(matches!(workspace.exists(beside), Err(WorkspaceError::Escape(_))));
}

/// A name with a line break, an escape sequence or a mark of direction draws nothing where names are listed.
#[cfg(unix)]
#[test]
fn names_that_are_listed_draw_nothing() {
    let (dir, workspace) = workspace();
    fs::create_dir(dir.path().join("d\n\u{1b}[2J")).unwrap();
    fs::write(dir.path().join("gpj.\u{202e}exe"), "").unwrap();
    let error = |path| workspace.read(path).unwrap_err().to_string();
    let listed = "d\\u000a\\u001b[2J/, gpj.\\u202eexe";
    assert_eq!(error("x"), format!("no such file 'x'; the directory contains: {listed}"));
    let inside =
        "no such file 'd\\u000a\\u001b[2J/n/x'; the nearest directory, 'd\\u000a\\u001b[2J', is empty";
    assert_eq!(error("d\n\u{1b}[2J/n/x"), inside);
    // The names as data are the real ones.
    assert_eq!(names(&workspace, "."), ["d\n\u{1b}[2J", "gpj.\u{202e}exe"]);
}

#[test]
fn a_missing_file_names_what_the_directory_holds() {
    let (_dir, workspace) = workspace();
    let error = |path| workspace.read(path).unwrap_err().to_string();
    assert_eq!(error("x"), "no such file 'x'; the directory is empty");
    workspace.write("src/lib.rs", "").unwrap();
    workspace.write("src/bin/main.rs", "").unwrap();
    assert_eq!(error("src/x"), "no such file 'src/x'; the directory contains: bin/, lib.rs");
    assert_eq!(error("sr/x"), "no such file 'sr/x'; the nearest directory, '.', contains: src/");
    assert_eq!(error("src/lib.rs/x"), "'src/lib.rs/x' is not a directory, or goes through a file");
}

#[test]
fn listings_are_bounded_and_count_the_rest() {
    let (dir, workspace) = workspace();
    for number in 0..LIST_ENTRIES_MAX + 3 {
        fs::write(dir.path().join(format!("{number:05}")), "xy").unwrap();
    }
    let listing = workspace.list(".").unwrap();
    assert_eq!((listing.entries.len(), listing.left_out), (LIST_ENTRIES_MAX, 3));
    let first = &listing.entries[0];
    assert_eq!((first.name.as_str(), first.kind, first.size), ("00000", EntryKind::File, Some(2)));
    let error = workspace.read("x").unwrap_err().to_string();
    assert!(error.ends_with("00018, 00019, … and 983 more"), "{error}");
}

#[test]
fn sizes_are_bounded_both_ways() {
    let (dir, workspace) = workspace();
    let fits = vec![b'x'; READ_BYTES_MAX as usize];
    workspace.write_bytes("big", &fits).unwrap();
    assert_eq!(workspace.read("big").unwrap().len(), fits.len());
    workspace.append("big", "x").unwrap();
    let error = workspace.read("big").unwrap_err().to_string();
    assert_eq!(error, "'big' is too large: 8388609 bytes, at most 8388608");
    let too_much = vec![b'x'; fits.len() + 1];
    assert!(matches!(workspace.write_bytes("new", too_much), Err(WorkspaceError::TooLarge { .. })));
    assert!(!dir.path().join("new").exists());
}

#[test]
fn bytes_that_are_no_text_say_where() {
    let (_dir, workspace) = workspace();
    workspace.write_bytes("x", b"ab\xff").unwrap();
    let error = workspace.read("x").unwrap_err().to_string();
    assert_eq!(error, "'x' is not UTF-8 text: invalid byte at 2");
    assert_eq!(workspace.read_bytes("x").unwrap(), b"ab\xff");
}

#[test]
fn names_that_no_file_can_have_are_refused_with_a_reason() {
    let (_dir, workspace) = workspace();
    let error = |path: &str| workspace.write(path, "").unwrap_err().to_string();
    assert_eq!(error(""), "bad path '': it is empty; the root of the workspace is '.'");
    assert_eq!(error("a\0b"), "bad path 'a\\u0000b': it contains a NUL byte");
    assert_eq!(error("x/"), "bad path 'x/': it names a directory, not a file");
    assert!(error(&"x".repeat(300)).ends_with("longer than a file name may be"));
    assert!(error(&"x/".repeat(3_000)).ends_with("it is longer than 4096 bytes"));
    assert_eq!(error("."), "'.' is a directory, not a file");
    assert!(names(&workspace, ".").is_empty());
}

#[test]
fn deleting_takes_files_and_empty_directories_but_never_the_root() {
    let (_dir, workspace) = workspace();
    workspace.write("d/f", "").unwrap();
    let error = |path| workspace.delete(path).unwrap_err().to_string();
    assert_eq!(error("d"), "the directory 'd' is not empty");
    assert_eq!(error("d/f/"), "'d/f/' is not a directory, or goes through a file");
    assert_eq!(error("."), "bad path '.': the root of the workspace cannot be deleted");
    assert_eq!(error("d/.."), "bad path 'd/..': a path to delete cannot end in '..'");
    assert!(error("d/g").starts_with("no such file 'd/g'; the directory contains: f"));
    workspace.delete("d/f").unwrap();
    workspace.delete("d/").unwrap();
    assert!(!workspace.exists("d").unwrap());
}

#[test]
fn a_failed_write_leaves_the_old_content_and_no_temporary_file() {
    let (_dir, workspace) = workspace();
    workspace.write("d/f", "old").unwrap();
    assert!(workspace.write("d", "new").is_err());
    assert!(workspace.write("d/f/g", "new").is_err());
    assert!(workspace.patch("d/f", "x", "y").is_err());
    assert_eq!(names(&workspace, "."), ["d"]);
    assert_eq!(names(&workspace, "d"), ["f"]);
    assert_eq!(workspace.read("d/f").unwrap(), "old");
}

#[test]
fn a_temporary_file_that_is_not_put_in_place_goes() {
    let (_dir, workspace) = workspace();
    let mut temp = temp::TempFile::create(workspace.dir(), true).unwrap();
    temp.fill(b"half").unwrap();
    assert_eq!(names(&workspace, ".").len(), 1);
    drop(temp);
    assert!(names(&workspace, ".").is_empty());
}

#[test]
fn readers_see_a_whole_content_while_it_is_replaced() {
    let (_dir, workspace) = workspace();
    let contents = ["a".repeat(100_000), "b".repeat(70_000)];
    workspace.write("f", &contents[0]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..200 {
                workspace.write("f", &contents[round % 2]).unwrap();
            }
        });
        for _ in 0..200 {
            assert!(contents.contains(&workspace.read("f").unwrap()));
        }
    });
}

#[test]
fn text_appended_by_two_threads_is_all_there() {
    let (_dir, workspace) = workspace();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..500).for_each(|_| workspace.append("log", "line\n").unwrap()));
        }
    });
    assert_eq!(workspace.read("log").unwrap(), "line\n".repeat(1_000));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::{
        fs::{PermissionsExt as _, symlink},
        net::UnixListener,
    };

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn the_permissions_of_a_replaced_file_are_kept() {
        let (dir, workspace) = workspace();
        let path = dir.path().join("run.sh");
        for wanted in [0o755, 0o600, 0o664] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
            workspace.write("run.sh", "new").unwrap();
            assert_eq!(mode(&path), wanted);
        }
    }

    #[test]
    fn a_read_only_file_is_not_replaced() {
        let (dir, workspace) = workspace();
        let path = dir.path().join("f");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(workspace.write("f", "new").unwrap_err().to_string(), "'f' is read-only");
        assert!(matches!(workspace.append("f", "x"), Err(WorkspaceError::ReadOnly { .. })));
        assert_eq!(workspace.read("f").unwrap(), "old");
    }

    #[test]
    fn a_link_inside_is_written_through_and_deleted_as_a_link() {
        let (dir, workspace) = workspace();
        workspace.write("real/f", "old").unwrap();
        symlink("real", dir.path().join("way")).unwrap();
        symlink("../real/f", dir.path().join("real/link")).unwrap();
        workspace.write("way/link", "new").unwrap();
        assert_eq!(workspace.read("real/f").unwrap(), "new");
        assert!(dir.path().join("real/link").is_symlink());
        workspace.delete("way/link").unwrap();
        assert_eq!(names(&workspace, "real"), ["f"]);
    }

    #[test]
    fn a_link_to_nothing_inside_is_written_where_it_leads() {
        let (dir, workspace) = workspace();
        symlink("made/f", dir.path().join("link")).unwrap();
        assert!(!workspace.exists("link").unwrap());
        workspace.write("link", "x").unwrap();
        assert_eq!(workspace.read("made/f").unwrap(), "x");
        assert!(dir.path().join("link").is_symlink());
    }

    #[test]
    fn links_out_and_loops_are_refused() {
        let (dir, workspace) = workspace();
        symlink("/etc", dir.path().join("etc")).unwrap();
        symlink("..", dir.path().join("up")).unwrap();
        symlink("loop", dir.path().join("loop")).unwrap();
        // Even inside, an absolute target is refused: the handle has no absolute paths.
        symlink(dir.path().join("loop"), dir.path().join("absolute")).unwrap();
        for path in ["etc/passwd", "etc", "up/x", "up", "absolute"] {
            let refused = |result: Result<(), WorkspaceError>| {
                assert!(matches!(result, Err(WorkspaceError::Escape(_))), "{path}: {result:?}");
            };
            refused(workspace.read(path).map(drop));
            refused(workspace.write(path, "x"));
            refused(workspace.append(path, "x"));
            refused(workspace.list(path).map(drop));
            refused(workspace.exists(path).map(drop));
        }
        assert!(workspace.read("loop").is_err());
        let error = workspace.write("loop", "x").unwrap_err().to_string();
        assert_eq!(error, "bad path 'loop': too many levels of symbolic links");
        workspace.delete("etc").unwrap();
        assert_eq!(names(&workspace, "."), ["absolute", "loop", "up"]);
    }

    #[test]
    fn pipes_and_sockets_are_refused_at_once() {
        let (dir, workspace) = workspace();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let _listener = UnixListener::bind(dir.path().join("socket")).unwrap();
        for (path, text) in
            [("pipe", "'pipe' is a pipe, not a file"), ("socket", "'socket' is a socket, not a file")]
        {
            for result in [
                workspace.read(path).map(drop),
                workspace.write(path, "x"),
                workspace.append(path, "x"),
                workspace.patch(path, "a", "b").map(drop),
            ] {
                assert_eq!(result.unwrap_err().to_string(), text);
            }
        }
        assert_eq!(workspace.list(".").unwrap().entries[0].kind, EntryKind::Special);
    }

    #[test]
    fn a_root_that_is_a_link_is_known_by_both_its_names() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        let link = dir.path().join("link");
        symlink("real", &link).unwrap();
        let workspace = Workspace::open(&link).unwrap();
        workspace.write(link.join("f"), "x").unwrap();
        assert_eq!(workspace.read(dir.path().join("real/f")).unwrap(), "x");
        assert!(workspace.root().ends_with("real"));
    }
}

/// SB-11: a guarded file is read, and written under none of its names.
#[cfg(unix)]
#[test]
fn a_guarded_file_is_not_written() {
    let (dir, workspace) = workspace();
    let root = dir.path();
    workspace.write("conf/toolyard.toml", "a").unwrap();
    fs::hard_link(root.join("conf/toolyard.toml"), root.join("other")).unwrap();
    std::os::unix::fs::symlink("conf", root.join("by_link")).unwrap();
    std::os::unix::fs::symlink("conf/toolyard.toml", root.join("link")).unwrap();
    workspace.guard(root.join("conf/toolyard.toml"));
    let guarded = |result: Result<(), WorkspaceError>| matches!(result, Err(WorkspaceError::Guarded { .. }));
    for path in ["conf/toolyard.toml", "conf/../conf/toolyard.toml", "by_link/toolyard.toml", "link", "other"]
    {
        assert!(guarded(workspace.write(path, "b")), "{path}");
        assert!(guarded(workspace.append(path, "b")), "{path}");
        assert!(guarded(workspace.patch(path, "a", "b").map(drop)), "{path}");
    }
    assert!(guarded(workspace.delete("conf/toolyard.toml")));
    assert_eq!(workspace.read("conf/toolyard.toml").unwrap(), "a");
    workspace.delete("link").unwrap(); // the link alone
    workspace.write("conf/toolyard.toml.bak", "b").unwrap();
    workspace.write("toolyard.toml", "another one").unwrap();
}

/// SB-11: a file that does not exist yet is guarded too, and so are the older parts of a log; clones share it.
#[test]
fn what_will_be_written_is_guarded_before() {
    let (dir, workspace) = workspace();
    workspace.write("logs/a", "").unwrap();
    workspace.clone().guard(dir.path().join("logs/events.jsonl"));
    for name in ["events.jsonl", "events.jsonl.1", "events.jsonl.20"] {
        let error = workspace.write(format!("logs/{name}"), "").unwrap_err();
        assert!(matches!(error, WorkspaceError::Guarded { .. }), "{name}: {error}");
    }
    for name in ["logs/events.jsonl.x", "logs/events.jsonl.", "logs/events", "events.jsonl"] {
        workspace.write(name, "").unwrap();
    }
}
