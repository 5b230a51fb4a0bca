//! Servers of all kinds, most of them bad, as the engine sees them: real processes that run this test program.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "client/beside.rs"]
mod beside;
#[path = "client/bounds.rs"]
mod bounds;
#[path = "client/calls.rs"]
mod calls;
#[path = "client/life.rs"]
mod life;
#[path = "client/lists.rs"]
mod lists;
#[path = "client/log.rs"]
mod log;
#[cfg(target_os = "linux")]
#[path = "client/memory.rs"]
mod memory;
#[allow(dead_code, reason = "not all of it is used on every system")]
#[path = "client/much.rs"]
mod much;
#[cfg(target_os = "linux")]
#[path = "client/peak.rs"]
mod peak;
#[cfg(target_os = "linux")]
#[path = "client/restarts.rs"]
mod restarts;
#[path = "client/server.rs"]
mod server;
#[path = "client/together.rs"]
mod together;
#[path = "client/yard.rs"]
mod yard;
