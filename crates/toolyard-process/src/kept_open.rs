//! Files that stay open as long as anything runs that this process has started.
//!
//! ```text
//!   keep_open(file) ─┬─► under a helper: the helper has it, and its programs do not
//!                    └─► in a process group: the programs inherit it
//! ```
//!
//! A lock on such a file (`flock`) is a lock of everybody who has it: it is free once all of them have ended.

use parking_lot::Mutex;
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use std::{
    fs::File,
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::{Arc, Weak},
};
use tokio::process::{Child, Command};

/// How many files are kept open at most: a helper is given them in one message.
pub const KEPT_OPEN_MAX: usize = 200;

/// The descriptors from here on are not the three that a program is given.
const FIRST_STRAY: i32 = 3;

static KEPT: Mutex<Vec<Weak<File>>> = Mutex::new(Vec::new());

/// Held while descriptors of this process can be inherited, so that no other start closes them meanwhile.
static STARTING: Mutex<()> = Mutex::new(());

/// A file that whatever is started from now on keeps open; dropping this changes nothing for what runs already.
///
/// # Examples
/// Whoever opens the lock later can tell whether anything is left of this process:
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("lock");
/// let lock = std::fs::File::create(path)?;
/// lock.lock()?;
/// let _kept = toolyard_process::keep_open(lock)?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "it is kept open as long as this lives"]
pub struct KeptOpen {
    _file: Arc<File>,
}

/// Keeps a file open in all that is started from now on, until the returned value is dropped: in helpers, which outlive
/// their programs, and in programs that have no helper, which can read and write it as far as it was opened for that. Unix
/// only.
///
/// # Errors
/// If [`KEPT_OPEN_MAX`] files are kept open.
pub fn keep_open(file: File) -> io::Result<KeptOpen> {
    let mut kept = KEPT.lock();
    kept.retain(|file| file.strong_count() > 0);
    if kept.len() >= KEPT_OPEN_MAX {
        return Err(io::Error::other(format!("more than {KEPT_OPEN_MAX} files are to be kept open")));
    }
    let file = Arc::new(file);
    kept.push(Arc::downgrade(&file));
    Ok(KeptOpen { _file: file })
}

/// What is to be kept open now.
pub(crate) fn kept_open() -> Vec<Arc<File>> {
    KEPT.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Starts a program that inherits what is to be kept open, and nothing else: not what this process was given or opened by
/// accident.
pub(crate) fn start(command: &mut Command) -> io::Result<Child> {
    let _alone = STARTING.lock();
    let mut inherited = kept_open().iter().map(|file| inheritable(file)).collect::<io::Result<Vec<_>>>()?;
    inherited.sort_unstable_by_key(|descriptor| descriptor.as_raw_fd());
    let numbers: Vec<i32> = inherited.iter().map(|descriptor| descriptor.as_raw_fd()).collect();
    close_fds::set_fds_cloexec_threadsafe(FIRST_STRAY, &numbers);
    command.spawn()
}

/// A copy of a descriptor that a program that is started inherits. It is not one of the program's own three.
fn inheritable(file: &File) -> io::Result<OwnedFd> {
    let copy = fcntl_dupfd_cloexec(file, FIRST_STRAY)?;
    fcntl_setfd(&copy, FdFlags::empty())?;
    Ok(copy)
}
