//! Directories for tests to work in.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// An empty directory of this name.
pub(crate) fn dir(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Polls a condition, for half a minute at most.
#[allow(dead_code, reason = "not every test program waits for something")]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "a test thread that waits for processes of the system"
        )]
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("it never came to this: {what}");
}
