//! A shell for the model: `sh -c` in the workspace, of which no process is left.
//!
//! ```text
//!   your program                        supervisor (Linux)                  the command
//!   shell ── command line ────────────► the program once more ── starts ──► sh -c …  and all it starts,
//!     │◄──── words: starting, exited, done ── one socket ──┘ ◄─ orphans ──── whatever it forks or detaches
//!     │───── closes the socket: stop ──►  SIGTERM, 3 s, SIGKILL, until nothing is left under it
//!     │◄──── output: one pipe, in the order of arrival ────────────────────────┘
//! ```
//!
//! # What each [`Containment`] covers
//! - [`Group`](Containment::Group), on any unix: the processes that stay in the process group of the command.
//!   One that leaves it (`setsid`, a daemon, a shell with job control) is not found and lives on.
//! - [`Supervisor`](Containment::Supervisor), on Linux: all of those too. The supervisor is a process of its own that
//!   adopts every orphan below it (`PR_SET_CHILD_SUBREAPER`; your own process never is one), walks `/proc` for what
//!   is under it, and ends that when the command has ended, when it is told to, and when your program has died,
//!   however that came. It has no terminal, no standard input, and hands on no descriptor but the pipe for output.
//!
//! Neither is a sandbox. A command has the rights of its user: it reads and writes what that user may, workspace or
//! not, and it can kill its own supervisor; then what is left of its session is killed, and what had left that
//! (`setsid`) may live on. A program that changes its user (`sudo`) cannot be ended by one who may not signal it. A process
//! that the command asks of somebody else (`systemd-run`, `docker run`, `at`) was never under it. What must not do
//! such things runs in a container or as another user.
//!
//! A tokio runtime in which this runs needs its I/O driver enabled, as `#[tokio::main]` has it.

mod answer;
mod arguments;
mod containment;
mod deltas;
mod group;
mod kept;
mod launch;
#[cfg(target_os = "linux")]
mod processes;
mod report;
mod running;
mod settings;
#[cfg(target_os = "linux")]
mod supervise;
#[cfg(target_os = "linux")]
mod supervised;
mod tool;
mod utf8;

pub use arguments::COMMAND_BYTES_MAX;
pub use containment::Containment;
#[cfg(target_os = "linux")]
pub use containment::{NotClaimed, Supervisor};
pub use deltas::{DELTA_BYTES_MAX, DELTAS_BYTES_MAX};
pub use settings::{ENVIRONMENT, OUTPUT_BYTES, Shell};
#[cfg(target_os = "linux")]
pub use supervise::supervise_if_asked;

use std::time::Duration;

/// How long processes that were asked to end (SIGTERM) have before they are killed (SIGKILL) (SC-6).
pub const TERM_GRACE: Duration = Duration::from_secs(3);
