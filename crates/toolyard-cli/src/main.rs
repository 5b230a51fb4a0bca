//! The program `toolyard`: it runs the tool calls of a provider's response from a shell, or of an MCP client.
//!
//! ```text
//!   arguments ─► cli ─┬─ run    input ─► wire ─► engine ─► results on stdout, live view and report on stderr
//!                     ├─ mcp    an MCP client ─► gateway ─► engine
//!                     ├─ plan   input ─► wire ─► engine, asked what it would do
//!                     ├─ tools  what the configuration offers
//!                     ├─ audit  a log of events ─► what it tells of every call, and whether it is whole
//!                     └─ check  what the configuration says, and why each tool is what it is
//! ```
//!
//! Owns files, terminals, signals and exit codes; what a call does and when is the engine's.

mod audit;
mod bench;
mod check;
mod cli;
mod commands;
mod config;
mod exit;
mod export;
mod fault;
mod gateway;
mod identity;
mod input;
mod logging;
mod mcp;
mod plan;
mod report;
mod run;
mod setup;
#[cfg(unix)]
mod shell;
mod shown;
mod table;
mod tools;

use std::process;

fn main() {
    // Before there is any thread: commands of the shell run under this program, started once more.
    #[cfg(target_os = "linux")]
    toolyard_tools::shell::supervise_if_asked();
    let exit = commands::main();
    // All is written by now. A thread that is stuck in a call ends with the process and does not hold it (SC-8).
    process::exit(exit.code().into())
}
