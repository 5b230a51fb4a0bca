//! `toolyard mcp` as seen by MCP clients of other projects: rmcp and the Python SDK.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "mcp/calls.rs"]
mod calls;
#[path = "mcp/client.rs"]
mod client;
#[path = "mcp/foreign.rs"]
mod foreign;
#[path = "program/inn.rs"]
mod inn;
#[path = "mcp/life.rs"]
mod life;
#[path = "mcp/pins.rs"]
mod pins;
#[path = "program/place.rs"]
mod place;
#[path = "mcp/readme.rs"]
mod readme;
#[path = "../../toolyard-mcp/tests/real/place.rs"]
#[expect(dead_code, reason = "what starts servers without the program is not needed here")]
mod real;
#[path = "mcp/servers.rs"]
mod servers;
