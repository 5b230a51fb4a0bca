//! `toolyard mcp` as seen by MCP clients of other projects: rmcp and the Python SDK.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod calls;
mod cancelled;
mod client;
mod confined;
mod fetch;
mod foreign;
mod guide;
mod life;
mod pins;
#[path = "../../../toolyard-mcp/tests/real/place.rs"]
#[expect(dead_code, reason = "what starts servers without the program is not needed here")]
mod real;
mod servers;
#[path = "../shared/mod.rs"]
mod shared;

use shared::{inn, missing, place};
