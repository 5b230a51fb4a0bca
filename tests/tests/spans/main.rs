//! The spans that the engine emits through `tracing`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod ends;
mod parents;
mod seen;
