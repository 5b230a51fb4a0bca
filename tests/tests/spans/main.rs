//! The spans that the engine emits through `tracing`.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod ends;
mod heard;
mod lines;
mod panics;
mod parents;
mod seen;
