//! The gateway's half: the tools of an engine, served to MCP clients.
//!
//! ```text
//!   client ─► pipes ─► transport ─► rmcp ─► handler ─┬─ tools/list ─► listing ─► what its session sees
//!             or posted  stamps the order            └─ tools/call ─► request ─► session ─► engine ─► answer
//!   client ◄─ elicitation ◄── asking ◄───────────── approvals ───────────────────────┤
//!   client ◄─ progress ◄───── waited ◄───────────── tool.output_delta ───────────────┤
//!   client ◄─ what a server of the call asks, logs, has done ◄── relay ◄─────────────┘
//! ```
//!
//! Every connection has a session of its own; its end cancels that. Each `tools/call` is a dispatch of its own, handed to
//! the engine in the order in which the requests came: calls of one client meet in the pools and the serial lease as
//! those of one batch do, but there are no runs, for MCP requests promise no order among each other. A client that needs
//! one result before it makes another call waits for it. Over HTTP even the order of arrival is the network's.

mod answer;
mod arrival;
mod asking;
#[expect(deprecated, reason = "what newer protocols leave out is what clients of today use")]
mod clients;
mod connection;
mod flying;
#[expect(deprecated, reason = "what newer protocols leave out is what clients of today use")]
mod handler;
mod http;
mod listing;
#[expect(deprecated, reason = "what newer protocols leave out is what clients of today use")]
mod notes;
mod pipes;
mod posted;
mod refusal;
#[expect(deprecated, reason = "what newer protocols leave out is what clients of today use")]
mod relay;
mod request;
mod sent;
mod sessions;
mod shown;
mod transport;
#[expect(deprecated, reason = "what newer protocols leave out is what clients of today use")]
mod waited;

pub use clients::Clients;
pub use connection::{Gateway, ServeError};
pub use http::{HttpError, HttpOptions};
