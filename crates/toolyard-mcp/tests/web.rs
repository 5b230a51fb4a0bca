//! Servers over HTTP, most of them bad, as the engine sees them. They run in this process, and each test defines how
//! its own behaves.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "web/calls.rs"]
mod calls;
#[path = "web/changes.rs"]
mod changes;
#[path = "web/eras.rs"]
mod eras;
#[cfg(target_os = "linux")]
#[path = "web/memory.rs"]
mod memory;
#[cfg(target_os = "linux")]
#[path = "client/much.rs"]
mod much;
#[cfg(target_os = "linux")]
#[path = "client/peak.rs"]
mod peak;
#[path = "web/places.rs"]
mod places;
#[path = "web/refusals.rs"]
mod refusals;
#[path = "web/server.rs"]
mod server;
#[path = "web/start.rs"]
mod start;
#[cfg(feature = "https")]
#[path = "web/tls.rs"]
mod tls;
#[allow(dead_code, reason = "shared with tests that look at more of it")]
#[path = "client/yard.rs"]
mod yard;
