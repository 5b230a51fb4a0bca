//! What a server asks, logs and reports during a call, on its way through the gateway to the client of the call.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod asks;
#[cfg(feature = "http")]
mod chained;
#[path = "../gateway/client.rs"]
mod client;
mod failures;
#[allow(dead_code, reason = "shared with tests that look at more of it")]
#[path = "../client/much.rs"]
mod much;
#[path = "../client/server.rs"]
mod server;
mod shown;
mod yard;
