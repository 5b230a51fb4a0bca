//! The gateway half: the tools of an engine, served to MCP clients.
//!
//! ```text
//!   client ─► pipes ─► transport ─► rmcp ─► handler ─┬─ tools/list ─► listing ─► the tools of its session
//!             or posted  stamps the order            └─ tools/call ─► request ─► session ─► engine ─► answer
//!   client ◄─ elicitation ◄── asking ◄───────────── approvals ───────────────────────┤
//!   client ◄─ progress ◄───── pending ◄──────────── tool.output_delta ───────────────┤
//!   client ◄─ questions, log lines, and progress of a server ◄── relay ◄─────────────┘
//! ```
//!
//! Every connection has its own session, which is cancelled when the connection ends. Each `tools/call` is a separate
//! dispatch, handed to the engine in the order in which the requests arrived. The calls of one client compete for the
//! pools and the serial lease like those of one batch, but there are no runs, because MCP promises no order among
//! requests: a client that needs one result before it makes another call waits for it. Over HTTP even the order of
//! arrival is up to the network.

mod answer;
mod arrival;
mod asking;
mod body;
#[expect(deprecated, reason = "newer protocols deprecate what clients still use")]
mod clients;
mod connection;
mod connections;
#[expect(deprecated, reason = "newer protocols deprecate what clients still use")]
mod handler;
mod head;
mod http;
mod in_flight;
mod incoming;
mod limits;
mod listing;
#[expect(deprecated, reason = "newer protocols deprecate what clients still use")]
mod notes;
mod opening;
#[expect(deprecated, reason = "newer protocols deprecate what clients still use")]
mod pending;
mod pipes;
mod posted;
mod redact;
mod refusal;
#[expect(deprecated, reason = "newer protocols deprecate what clients still use")]
mod relay;
mod request;
mod sessions;
mod token;
mod transport;
mod weight;

pub use clients::Clients;
pub use connection::{Gateway, ServeError};
pub use connections::{Connections, Seat};
pub use http::{HttpError, HttpOptions, Mounted};
pub use limits::ClientLimits;
