//! The program as a shell sees it: standard output, standard error, exit codes, signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod about;
mod ask;
mod audit;
mod bad_input;
mod compare;
mod confined;
mod continued;
mod deep_arguments;
mod environment;
mod episodes;
#[cfg(unix)]
mod episodes_yard;
mod forms;
#[cfg(target_os = "linux")]
mod groups;
mod init;
mod interrupt;
mod jobs;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
#[cfg(all(feature = "micro-vm", target_os = "linux", target_arch = "x86_64"))]
mod machines;
mod memory;
mod mocks;
#[cfg(feature = "wasm")]
mod modules;
mod named_pipe;
mod page;
mod permission;
#[cfg(unix)]
mod pins;
mod programs;
mod recorded;
mod remote;
mod report;
mod samples;
mod schemas;
mod serve;
mod servers;
mod settings;
#[path = "../shared/mod.rs"]
mod shared;
mod shell;
mod small_things;
mod streams;
mod tables;
mod terminal;
mod trace;
#[cfg(target_os = "linux")]
mod way_out;

#[cfg(unix)]
use shared::inn;
#[cfg(target_os = "linux")]
use shared::missing;
use shared::{child, place, service, workspace};
