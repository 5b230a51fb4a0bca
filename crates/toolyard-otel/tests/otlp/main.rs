//! The export against a receiver that reads the real protocol.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so")]

mod away;
mod metrics;
mod receiver;
mod scene;
mod traceparent;
mod traces;
