//! What a module reaches of this machine's files: the directories that it is given.

use crate::{both, run};
use std::fs;
use tempfile::TempDir;
use toolyard_test_modules::{Access, SOCKET, open};
use toolyard_wasm::{Directory, End, Run};

/// `NOTCAPABLE`, `PERM` and `NOENT` of preview 1: what a path that leads outside, a write that is not granted, and a path
/// to nothing are answered with.
const NOENT: i32 = 44;
const PERM: i32 = 63;

/// A directory `in` with a file, beside a file that is nobody's business.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("in/sub")).unwrap();
    fs::write(place.path().join("in/file"), "inside").unwrap();
    fs::write(place.path().join("secret"), "outside").unwrap();
    place
}

async fn opens(place: &TempDir, path: &str, access: Access, is_writable: bool) -> End {
    let mut ends = Vec::new();
    for module in both(&open(path, access)) {
        let directory = Directory::at(place.path().join("in"), ".");
        let directory = if is_writable { directory.writable() } else { directory };
        ends.push(run(&module, Run::new().directory(directory)).await.end);
    }
    // Components tell success alone.
    let is_success = |end: &End| *end == End::Exited(0);
    assert_eq!(is_success(&ends[0]), is_success(&ends[1]), "{ends:?}");
    ends.swap_remove(0)
}

/// SM-2: what is granted is there, for reading or for writing too.
#[tokio::test]
async fn what_is_granted_is_there() {
    let place = place();
    assert_eq!(opens(&place, "file", Access::Read, false).await, End::Exited(0));
    assert_eq!(opens(&place, "nothing", Access::Read, false).await, End::Exited(NOENT));
    assert_eq!(opens(&place, "sub/made", Access::Create, true).await, End::Exited(0));
    assert_eq!(fs::read_to_string(place.path().join("in/sub/made")).unwrap(), "x");
}

/// SM-2: what is granted for reading is not written.
#[tokio::test]
async fn what_is_granted_for_reading_is_not_written() {
    let place = place();
    for (path, access) in [("file", Access::Write), ("file", Access::Create), ("made", Access::Create)] {
        assert_eq!(opens(&place, path, access, false).await, End::Exited(PERM), "{path}");
    }
    assert_eq!(fs::read_to_string(place.path().join("in/file")).unwrap(), "inside");
    assert!(!place.path().join("in/made").exists());
}

/// SM-2: neither `..` nor an absolute path leads out.
#[tokio::test]
async fn no_path_leads_outside() {
    let place = place();
    let secret = place.path().join("secret");
    let absolute = secret.to_str().unwrap();
    for path in
        ["../secret", "sub/../../secret", absolute, "/etc/passwd", "./.././secret", "/proc/self/environ"]
    {
        for access in [Access::Read, Access::Create] {
            let end = opens(&place, path, access, true).await;
            assert!(matches!(end, End::Exited(code) if code != 0), "{path}: {end:?}");
        }
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "outside");
}

/// SM-2: nor does a link, be it one that was there before.
#[cfg(unix)]
#[tokio::test]
async fn no_link_leads_outside() {
    let place = place();
    let link =
        |to: &str, name: &str| std::os::unix::fs::symlink(to, place.path().join("in").join(name)).unwrap();
    link("../secret", "near");
    link(place.path().join("secret").to_str().unwrap(), "far");
    link("..", "up");
    link("file", "inside");
    for path in ["near", "far", "up/secret"] {
        for access in [Access::Read, Access::Write] {
            let end = opens(&place, path, access, true).await;
            assert!(matches!(end, End::Exited(code) if code != 0), "{path}: {end:?}");
        }
    }
    assert_eq!(opens(&place, "inside", Access::Read, false).await, End::Exited(0));
    assert_eq!(fs::read_to_string(place.path().join("secret")).unwrap(), "outside");
}

/// Without a directory there are no files.
#[tokio::test]
async fn without_a_directory_there_are_no_files() {
    for module in both(&open("/etc/passwd", Access::Read)) {
        let end = run(&module, Run::new()).await.end;
        assert!(matches!(end, End::Exited(code) if code != 0), "{end:?}");
    }
}

/// SM-2: a directory is known by what it is, whatever stands at its name by now.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_handle_is_the_directory_that_was_opened() {
    let place = place();
    let handle = fs::File::open(place.path().join("in")).unwrap();
    fs::rename(place.path().join("in"), place.path().join("moved")).unwrap();
    fs::create_dir(place.path().join("in")).unwrap();
    let [module, _] = both(&open("file", Access::Read));
    let end = run(&module, Run::new().directory(Directory::of(handle, "."))).await.end;
    assert_eq!(end, End::Exited(0));
}

/// SB-8: a directory that is not there is no fault of the module.
#[tokio::test]
async fn a_missing_directory_is_the_runtimes_failure() {
    let [module, _] = both(&open("file", Access::Read));
    let broken = module.run(Run::new().directory(Directory::at("/no/such/place", "."))).await.unwrap_err();
    assert!(broken.why.starts_with("a directory cannot be opened for it: '.': "), "{broken}");
}

/// SB-6: there is no network, and what a directory is not is no socket.
#[tokio::test]
async fn there_is_no_socket() {
    let place = place();
    for module in both(SOCKET) {
        let run = Run::new().directory(Directory::at(place.path(), "."));
        let end = crate::run(&module, run).await.end;
        assert!(!matches!(end, End::Exited(0)), "{end:?}");
    }
}
