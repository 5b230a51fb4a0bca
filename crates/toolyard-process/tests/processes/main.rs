//! Programs that are started and ended, with real processes.
//!
//! Real processes know no paused time, so these tests poll for conditions, each with a bound far beyond the usual time.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

#[cfg(target_os = "linux")]
mod alone;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod compiled;
#[cfg(target_os = "linux")]
mod confined;
mod containments;
#[cfg(target_os = "linux")]
mod daemons;
#[cfg(target_os = "linux")]
mod doors;
mod endings;
mod given;
#[cfg(target_os = "linux")]
mod groups;
#[cfg(target_os = "linux")]
mod helpers;
#[cfg(target_os = "linux")]
mod missing;
#[cfg(target_os = "linux")]
mod paths;
mod yard;
