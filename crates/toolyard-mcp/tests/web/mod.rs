//! Servers over HTTP, most of them bad, as the engine sees them. They run in this process, and each test defines how
//! its own behaves.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod changes;
mod eras;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
#[path = "../client/much.rs"]
mod much;
#[cfg(target_os = "linux")]
#[path = "../client/peak.rs"]
mod peak;
mod places;
mod refusals;
mod server;
mod start;
#[cfg(feature = "https")]
mod tls;
#[allow(dead_code, reason = "shared with tests that look at more of it")]
#[path = "../client/yard.rs"]
mod yard;
