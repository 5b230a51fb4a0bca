//! Programs that are started, fed and ended, with everything that they start.
//!
//! ```text
//!   your program                         helper (Linux)                     the program
//!   Program::start ── launch document ─► the same program again ── starts ─► and all that it starts
//!     │             and descriptors        │  ▲
//!     │                                    │  └──── orphans: whatever it forks or detaches
//!     │◄── started, exited, done ── socket ┘
//!     │──── a byte: end all ─────────────► SIGTERM, 3 s, SIGKILL, until no process is left under it
//!     │──── the end of the socket ───────► SIGKILL at once: your program has died, or wants it so
//!     │
//!     └◄─► its standard input and output: pipes between your program and it
//! ```
//!
//! A [`Program`] says what to start, a [`Containment`] how it is kept together, and what is started is [`Started`]: its
//! pipes, and a handle to its [`Processes`].
//!
//! # What each [`Containment`] covers
//! - `Containment::Group`, anywhere: on unix the processes that stay in the program's process group. A process that leaves
//!   it (`setsid`, a daemon, a shell with job control) is not found and survives; when your program is killed, all
//!   survive. On Windows only the program itself is known: it is killed where others are asked to end first, and what it
//!   started survives.
//! - `Containment::Helper`, on Linux: all of those too. The helper is a separate process that adopts every orphan below
//!   it (`PR_SET_CHILD_SUBREAPER`; your own process never does) and finds the processes under it in `/proc`. It ends
//!   them when the program has ended, when it is told to stop, and, at once, when your program has died for whatever
//!   reason. It has no terminal, no environment and no descriptor of yours, and passes on what the program is given.
//!
//! Neither is a sandbox. A program has the rights of its user: it can read and write whatever that user may, and it can
//! kill its own helper. Then the rest of the helper's session is killed, and processes that had left that session
//! (`setsid`) may survive. A program that changes its user (`sudo`) cannot be ended by a user who may not signal it. A
//! process that another service starts for the program (`systemd-run`, `docker run`, `at`) was never under it. To rule
//! these out, run your program in a container or as another user.
//!
//! What keeps and shows output is here as well: [`HeadTail`] keeps both ends of it, [`Deltas`] splits it into pieces
//! that may be shown, [`utf8`] says where it may be cut.
//!
//! The tokio runtime needs its I/O and time drivers enabled, as under `#[tokio::main]`.

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod confine;
mod containment;
mod deltas;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(unix)]
mod descriptor3;
mod directory;
#[cfg(target_os = "linux")]
mod door;
mod git;
#[cfg_attr(not(unix), path = "lone.rs")]
mod group;
mod head_tail;
#[cfg(target_os = "linux")]
mod helped;
#[cfg(target_os = "linux")]
mod helper;
#[cfg(unix)]
mod kept_open;
mod lasting;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod message;
#[cfg(unix)]
mod open_files;
#[cfg(unix)]
mod output;
mod pipes;
mod plain_path;
mod processes;
mod program;
mod report;
#[cfg(unix)]
mod search;
mod start;
pub mod utf8;

#[cfg(target_os = "linux")]
pub use cgroup::{Cgroup, GroupLimits, SharedGroup};
#[cfg(target_os = "linux")]
pub use confine::{
    Confinement, GRANTS_MAX, ProcessLimits, Reached, ReachedPath, SYSTEM, SYSTEM_FILES, TMP_BYTES,
    landlock_alone_lacks, landlock_version,
};
pub use containment::Containment;
pub use deltas::{DELTA_BYTES_MAX, DELTAS_BYTES_MAX, Deltas};
#[cfg(target_os = "linux")]
pub use door::Door;
pub use git::git_files;
pub use head_tail::HeadTail;
#[cfg(target_os = "linux")]
pub use helper::{Helper, NotClaimed, help_if_asked};
#[cfg(unix)]
pub use kept_open::{KEPT_OPEN_MAX, KeptOpen, keep_open};
pub use lasting::LastingLimits;
#[cfg(target_os = "linux")]
pub use launch::LAUNCH_BYTES_MAX;
#[cfg(unix)]
pub use open_files::raise_open_files;
#[cfg(unix)]
pub use output::OutputReader;
pub use pipes::{Input, Output};
pub use plain_path::plain_path;
pub use processes::{Killer, Processes};
pub use program::Program;
pub use report::{End, Limit, NotStarted, Ran, Report, Rest, Used};
pub use start::Started;

/// The time that processes have to end after SIGTERM before they are killed by SIGKILL (SC-6).
pub const TERM_GRACE: std::time::Duration = std::time::Duration::from_secs(3);
