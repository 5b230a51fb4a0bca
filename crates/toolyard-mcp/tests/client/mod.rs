//! Servers of all kinds, most of them bad, as the engine sees them: real processes that run this test program.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod beside;
mod bounds;
mod calls;
mod life;
mod lists;
mod log;
#[cfg(target_os = "linux")]
mod memory;
#[allow(dead_code, reason = "not all of it is used on every system")]
pub(crate) mod much;
#[cfg(target_os = "linux")]
pub(crate) mod peak;
#[cfg(target_os = "linux")]
mod restarts;
pub(crate) mod server;
mod together;
pub(crate) mod yard;
