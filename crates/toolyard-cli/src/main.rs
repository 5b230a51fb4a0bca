//! The program `toolyard`: runs the tool calls of a provider's response from a shell, or those of an MCP client.
//!
//! ```text
//!   arguments ─► cli ─┬─ init   a directory ─► a configuration, and a first tool in Rust or Python
//!                     ├─ run    input ─► wire ─► engine ─► results on stdout, live view and report on stderr
//!                     ├─ mcp    an MCP client ─► gateway ─► engine; mcp fetch: a server ─► cache, to be confined
//!                     ├─ serve  programs and people ─► server ─► engine; token new: a secret for them
//!                     ├─ supervise  agents, as programs ─► line protocol ─► engine
//!                     ├─ plan   input ─► wire ─► engine, asked what it would do
//!                     ├─ tools  what the configuration offers
//!                     ├─ sandbox  setup micro-vm: snapshots of virtual machines, before calls need them
//!                     ├─ view   an event log ─► a page for a browser
//!                     ├─ journal  what an engine has recorded ─► lists and exports; prune, approve, forget
//!                     ├─ compare  two reports of runs ─► what has changed
//!                     ├─ completions, man, schema  what the program says about itself, for shells and editors
//!                     ├─ audit  an event log ─► its account of every call, and whether it is whole
//!                     └─ check  what the configuration says, and why each tool is what it is
//! ```
//!
//! The program owns files, terminals, signals and exit codes; the engine decides what runs when.

mod audit;
mod bench;
mod cache;
mod check;
mod cli;
mod commands;
mod compare;
mod completions;
mod config;
mod containment;
mod display;
mod error;
mod event_file;
mod exit;
mod export;
mod fetch;
mod gateway;
mod hangup;
mod identity;
mod init;
mod input;
#[cfg_attr(not(feature = "journal"), path = "no_journal.rs")]
mod journal;
#[cfg_attr(not(feature = "journal"), path = "no_journal_file.rs")]
mod journal_file;
mod left;
mod logging;
#[cfg_attr(
    not(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64")),
    path = "no_machines.rs"
)]
mod machines;
mod man;
mod mcp;
#[cfg_attr(not(feature = "wasm"), path = "no_modules.rs")]
mod modules;
mod output_file;
mod page_file;
mod plan;
mod programs;
mod reconcile;
mod reload;
mod report;
mod run;
mod sandboxes;
mod schema;
mod screen;
mod secrecy;
mod serve;
mod setup;
#[cfg(unix)]
mod shell;
mod stand_ins;
mod supervise;
mod table;
mod token;
mod tools;
mod trace;
mod view;

use std::process;

fn main() {
    #[cfg(target_os = "linux")]
    secrecy::close_process();
    // Must run before any thread exists: other programs run under a second process of this one.
    #[cfg(target_os = "linux")]
    toolyard_process::help_if_asked();
    let exit = commands::main();
    // All output is written by now. A thread stuck in a call ends with the process and does not delay it (SC-8).
    process::exit(exit.code().into())
}
