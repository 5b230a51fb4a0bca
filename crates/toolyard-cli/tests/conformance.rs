//! `toolyard mcp`, and the program as a client of MCP servers, judged by the official conformance suite and the
//! official inspector. `docs/mcp-conformance.md` lists the expected result of each scenario.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "conformance/gateway.rs"]
mod gateway;
#[path = "conformance/inspector.rs"]
mod inspector;
#[path = "conformance/judges.rs"]
mod judges;
#[path = "program/place.rs"]
mod place;
#[path = "conformance/table.rs"]
mod table;

#[path = "conformance/as_client.rs"]
#[cfg(feature = "mcp-http")]
mod as_client;
#[path = "conformance/as_server.rs"]
mod as_server;
