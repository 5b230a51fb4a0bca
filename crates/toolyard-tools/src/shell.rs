//! A shell for the model: `sh -c` in the workspace, which leaves no process behind.
//!
//! ```text
//!   your program                        supervisor (Linux)                  the command
//!   shell ── command line ────────────► the same program again ── starts ─► sh -c …  and all it starts,
//!     │◄────────── starting, exited, done ── one socket ──┘ ◄─ orphans ──── whatever it forks or detaches
//!     │───── closes the socket: stop ──►  SIGTERM, 3 s, SIGKILL, until no process is left under it
//!     │◄──── output: one pipe, in the order of arrival ────────────────────────┘
//! ```
//!
//! # What each [`Containment`] covers
//! - [`Group`](Containment::Group), on any unix: the processes that stay in the command's process group. A process
//!   that leaves it (`setsid`, a daemon, a shell with job control) is not found and survives.
//! - [`Supervisor`](Containment::Supervisor), on Linux: those processes too. The supervisor is a separate process
//!   that adopts every orphan below it (`PR_SET_CHILD_SUBREAPER`; your own process never does) and finds the
//!   processes under it in `/proc`. It ends them when the command has ended, when it is told to stop, and when your
//!   program has died for whatever reason. It has no terminal and no standard input, and passes on no descriptor but
//!   the output pipe.
//!
//! Neither is a sandbox. A command has the rights of its user: it can read and write whatever that user may, in the
//! workspace or not, and it can kill its own supervisor. Then the rest of the supervisor's session is killed, and
//! processes that had left that session (`setsid`) may survive. A program that changes its user (`sudo`) cannot be
//! ended by a user who may not signal it. A process that another service starts for the command (`systemd-run`,
//! `docker run`, `at`) was never under it. To rule these out, run the program in a container or as another user.
//!
//! The tokio runtime needs its I/O and time drivers enabled, as under `#[tokio::main]`.

mod answer;
mod arguments;
mod containment;
mod deltas;
mod ends;
mod group;
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

/// The time that processes have to end after SIGTERM before they are killed by SIGKILL (SC-6).
pub const TERM_GRACE: Duration = Duration::from_secs(3);
