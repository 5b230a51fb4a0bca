//! A shell for the model: `sh -c` in the workspace, which leaves no process behind.
//!
//! ```text
//!   call ──► shell ──► /bin/sh -c -- COMMAND    started, watched and ended by toolyard_process
//!              │◄───── output: one pipe, in the order of arrival
//!              ▼
//!            result: exit code, head and tail of the output; pieces of it as they arrive
//! ```
//!
//! How the command's processes are kept together is said by a [`Containment`](toolyard_process::Containment);
//! [`toolyard_process`] says what each covers, and that neither is a sandbox: a command has the rights of its user.
//!
//! The tokio runtime needs its I/O and time drivers enabled, as under `#[tokio::main]`.

mod answer;
mod arguments;
mod command;
mod running;
mod settings;
mod tool;
mod usage;

pub use answer::{Finished, Stopped};
pub use arguments::COMMAND_BYTES_MAX;
pub use running::Attended;
pub use settings::{ENVIRONMENT, OUTPUT_BYTES, Shell};
pub use usage::usage;
