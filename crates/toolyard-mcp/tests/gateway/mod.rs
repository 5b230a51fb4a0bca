//! The gateway as its clients see it: JSON lines in and out, over a pipe, with an engine of test tools behind it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod approvals;
mod bounds;
mod calls;
pub(crate) mod client;
mod http;
mod life;
#[cfg(target_os = "linux")]
mod memory;
mod odd;
mod twice;
mod yard;
