//! A program that reaches nothing but what it is given.
//!
//! ```text
//!   helper ── user, mount, pid, ipc, uts and network namespaces of its own; in the last a door, if it has one
//!     │       a root of nothing but: the system, read only; what is granted; /dev, /proc, /tmp of its own
//!     └─ init ── the same program again, the first process of the pid namespace: enters the root,
//!          │     gives up its capabilities, applies limits, landlock and seccomp, reaps and ends what is there
//!          └─ the program, and all that it starts: gone when init is
//! ```
//!
//! Where a user may make no namespaces, landlock and seccomp are what is left, if that is asked for: `alone`.
//!
//! Each layer is applied by a process before it executes the next: nothing runs between a fork and an exec, and no
//! descriptor is made from a number, so that all of it is safe code.

mod alone;
mod attend;
mod binds;
mod door;
mod inside;
mod lasting;
mod limits;
mod reached;
mod rights;
mod root;
mod syscalls;
mod system;
mod user;

pub use alone::landlock_alone_lacks;
pub(crate) use alone::{ENTER, enter};
pub(crate) use inside::{INIT, init};
pub use limits::ProcessLimits;
pub use reached::{Reached, ReachedPath};
pub use rights::landlock_version;
pub use system::{SYSTEM, SYSTEM_FILES};

use crate::{Cgroup, GroupLimits, launch::Received};
use serde::{Deserialize, Serialize};
use std::{
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Component, Path, PathBuf},
};

/// The size of a private `/tmp`, in bytes, unless another is set.
pub const TMP_BYTES: u64 = 256 << 20;

/// The most paths that are granted.
pub const GRANTS_MAX: usize = 200;

/// What a confined program reaches: the system, read only, what is granted here, and nothing else. Linux only.
///
/// # Examples
/// ```
/// use std::fs::File;
/// use toolyard_process::{Confinement, ProcessLimits};
/// # let dir = tempfile::tempdir()?;
/// # let work = dir.path();
/// let confinement = Confinement::new()
///     .grant(File::open(work)?, work, true)
///     .limits(ProcessLimits { open_files: Some(64), ..ProcessLimits::default() });
/// # let _ = confinement;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a program is confined by `Program::confined`"]
pub struct Confinement {
    pub(crate) layout: Layout,
    /// The granted paths by handle, in the order of the layout.
    pub(crate) handles: Vec<OwnedFd>,
}

/// What a confinement tells a helper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Layout {
    pub(crate) means: Means,
    pub(crate) system: Vec<PathBuf>,
    pub(crate) grants: Vec<Grant>,
    /// Paths inside that are not written, although they lie in one that is.
    pub(crate) kept: Vec<PathBuf>,
    pub(crate) tmp_bytes: u64,
    pub(crate) limits: ProcessLimits,
    /// The group that it gets.
    pub(crate) group: Option<Group>,
    /// Whether it has a way out.
    pub(crate) has_door: bool,
}

/// What confines a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Means {
    /// Namespaces, and within them landlock and seccomp.
    Namespaces,
    /// Landlock and seccomp.
    Landlock {
        /// Where the directory for its temporary files is made.
        place: PathBuf,
    },
}

/// A group for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Group {
    /// The delegated group in which it is made.
    pub(crate) within: PathBuf,
    pub(crate) limits: GroupLimits,
}

/// A path of the host that the program reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Grant {
    /// Where the program finds it.
    pub(crate) at: PathBuf,
    pub(crate) is_writable: bool,
}

impl Default for Confinement {
    fn default() -> Self {
        Self::new()
    }
}

impl Confinement {
    /// A program that reaches the [system](SYSTEM) alone.
    pub fn new() -> Self {
        let system = SYSTEM.iter().chain(SYSTEM_FILES).map(PathBuf::from).collect();
        let layout = Layout {
            means: Means::Namespaces,
            system,
            grants: Vec::new(),
            kept: Vec::new(),
            tmp_bytes: TMP_BYTES,
            limits: ProcessLimits::default(),
            group: None,
            has_door: false,
        };
        Self { layout, handles: Vec::new() }
    }

    /// Confines it by landlock and seccomp alone, for machines on which a user may make no namespaces. This is weaker:
    /// [`landlock_alone_lacks`] says what it lacks, and with which kernels there is none.
    ///
    /// - What it is granted it finds where the host has it, as otherwise; the rest is there and cannot be opened.
    /// - In a directory that holds something [kept](Self::keep) nothing is made, renamed or removed. The files in it are
    ///   written in place, and the directories in it as they were granted.
    /// - Instead of a `/tmp` it has a directory of its own within that of this process ([`std::env::temp_dir`]), which the
    ///   variables `TMPDIR` and `HOME` name. It is removed when the program has ended.
    /// - It makes no sockets, and has no [way out](Self::door).
    /// - A limit on processes needs a [group](Self::cgroup): without namespaces all those of its user would count.
    pub fn landlock_alone(mut self) -> Self {
        self.layout.means = Means::Landlock { place: std::env::temp_dir() };
        self
    }

    /// Replaces the parts of the system that it reaches, read only: those that exist of these absolute paths.
    pub fn system<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.layout.system = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Grants a directory with everything below it, or a file, which the program finds at this absolute path. The handle
    /// says what is granted: if its name has become that of something else, the program is not started.
    pub fn grant(mut self, handle: impl Into<OwnedFd>, at: impl Into<PathBuf>, is_writable: bool) -> Self {
        self.layout.grants.push(Grant { at: at.into(), is_writable });
        self.handles.push(handle.into());
        self
    }

    /// Keeps a path inside from being written although it lies in one that is, if it exists.
    pub fn keep(mut self, path: impl Into<PathBuf>) -> Self {
        self.layout.kept.push(path.into());
        self
    }

    /// Sets the size of its private `/tmp`, in bytes. It is memory.
    pub fn tmp_bytes(mut self, most: u64) -> Self {
        self.layout.tmp_bytes = most;
        self
    }

    /// Sets its limits, of each process.
    pub fn limits(mut self, limits: ProcessLimits) -> Self {
        self.layout.limits = limits;
        self
    }

    /// Gives all its processes a group of their own in a delegated one, with these limits. A program whose group cannot be
    /// made, or cannot keep one of them, is not started.
    pub fn cgroup(mut self, cgroup: &Cgroup, limits: GroupLimits) -> Self {
        self.layout.group = Some(Group { within: cgroup.path().to_owned(), limits });
        self
    }

    /// Gives it a way out: [`Started::door`](crate::Started::door), which it finds on port
    /// [`Door::PORT`](crate::Door::PORT) of 127.0.0.1. That is in a network namespace of its own with nothing else in
    /// it; it can make TCP sockets then, and no others. Without a door it can make none.
    pub fn door(mut self) -> Self {
        self.layout.has_door = true;
        self
    }

    /// Whether a helper can be told all this.
    pub(crate) fn check(&self) -> io::Result<()> {
        let wrong = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if self.handles.len() > GRANTS_MAX {
            return wrong(format!("more than {GRANTS_MAX} paths are granted"));
        }
        if let Means::Landlock { place } = &self.layout.means {
            if self.layout.has_door {
                return wrong("without namespaces there is no way out of it".to_owned());
            }
            if self.layout.limits.processes.is_some() {
                return wrong("without namespaces a limit on its processes needs a group".to_owned());
            }
            if !place.is_absolute() {
                return wrong(format!(
                    "the directory for temporary files, '{}', is not absolute",
                    place.display()
                ));
            }
        }
        let grants = self.layout.grants.iter().map(|grant| &grant.at);
        match grants.chain(&self.layout.system).chain(&self.layout.kept).find(|path| !is_plain(path)) {
            Some(path) => wrong(format!("'{}' is not an absolute path without '..'", path.display())),
            None => Ok(()),
        }
    }
}

/// Starts a program confined, and waits until all of it has ended. For a helper, which is of no other use afterwards.
pub(crate) fn start(received: Received, socket: UnixStream) -> io::Result<()> {
    let means = received.confined().map(|confined| confined.layout.means.clone());
    match means {
        Some(Means::Landlock { place }) => alone::start(received, &place, socket),
        _ => inside::start(received, socket),
    }
}

/// Whether a path leads to what is open.
fn is_same(handle: BorrowedFd<'_>, path: &Path) -> bool {
    let identity = |file: rustix::fs::Stat| (file.st_dev, file.st_ino);
    let (open, found) = (rustix::fs::fstat(handle), rustix::fs::stat(path));
    open.is_ok_and(|open| found.is_ok_and(|found| identity(open) == identity(found)))
}

/// Whether a path is absolute, and says by its name alone where it leads.
fn is_plain(path: &Path) -> bool {
    let mut components = path.components();
    components.next() == Some(Component::RootDir)
        && components.all(|component| matches!(component, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_they_say() {
        for (path, plain) in [("/a/b", true), ("/", true), ("a", false), ("/a/../b", false), ("", false)] {
            assert_eq!(Confinement::new().keep(path).check().is_ok(), plain, "{path}");
        }
    }
}
