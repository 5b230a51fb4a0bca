//! The gateway as its clients see it: JSON lines in and out, over a pipe, with an engine of test tools behind it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "gateway/approvals.rs"]
mod approvals;
#[path = "gateway/bounds.rs"]
mod bounds;
#[path = "gateway/calls.rs"]
mod calls;
#[path = "gateway/client.rs"]
mod client;
#[path = "gateway/http.rs"]
mod http;
#[path = "gateway/life.rs"]
mod life;
#[cfg(target_os = "linux")]
#[path = "gateway/memory.rs"]
mod memory;
#[path = "gateway/odd.rs"]
mod odd;
#[path = "gateway/twice.rs"]
mod twice;
#[path = "gateway/yard.rs"]
mod yard;
