//! The program as a shell sees it: standard output, standard error, exit codes, signals.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "program/ask.rs"]
mod ask;
#[path = "program/bad_input.rs"]
mod bad_input;
mod child;
#[path = "program/deep_arguments.rs"]
mod deep_arguments;
#[path = "program/environment.rs"]
mod environment;
#[path = "program/episodes.rs"]
mod episodes;
#[cfg(unix)]
#[path = "program/inn.rs"]
mod inn;
#[path = "program/interrupt.rs"]
mod interrupt;
#[cfg(target_os = "linux")]
#[path = "program/memory.rs"]
mod memory;
#[path = "program/permission.rs"]
mod permission;
#[cfg(unix)]
#[path = "program/pins.rs"]
mod pins;
#[path = "program/place.rs"]
mod place;
#[path = "program/report.rs"]
mod report;
#[path = "program/samples.rs"]
mod samples;
#[path = "program/servers.rs"]
mod servers;
#[path = "program/settings.rs"]
mod settings;
#[path = "program/shell.rs"]
mod shell;
#[path = "program/streams.rs"]
mod streams;
#[path = "program/terminal.rs"]
mod terminal;
#[path = "program/workspace.rs"]
mod workspace;
