//! The program as a shell sees it: standard output, standard error, exit codes, signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod ask;
mod audit;
mod bad_input;
#[path = "../child/mod.rs"]
mod child;
mod deep_arguments;
mod environment;
mod episodes;
#[cfg(unix)]
mod inn;
mod interrupt;
#[cfg(target_os = "linux")]
mod memory;
mod named_pipe;
mod permission;
#[cfg(unix)]
mod pins;
mod place;
mod report;
mod samples;
mod servers;
mod settings;
mod shell;
mod streams;
mod terminal;
mod workspace;
