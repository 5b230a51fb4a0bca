//! `toolyard mcp`, and the program as a client of MCP servers, judged by the official conformance suite and the
//! official inspector. `docs/mcp-conformance.md` lists the expected result of each scenario.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod gateway;
mod inspector;
mod judges;
#[path = "../shared/mod.rs"]
mod shared;
mod table;

#[cfg(feature = "mcp-http")]
mod as_client;
mod as_server;

use shared::place;
