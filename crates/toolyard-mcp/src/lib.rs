//! MCP servers as tools of an engine, and an engine's tools served to MCP clients.
//!
//! ```text
//!   ServerConfig ─► Servers::start ─┬─ supervisor ─► process ─► transport ─► rmcp ─► connection
//!                                   │      ▲ restart with backoff, give up            │ list, call
//!                                   └─ tools() ─► engine ─► RemoteTool::execute ──────┘
//! ```
//!
//! A server is third-party code. Its output is bounded before it is parsed, its claims about what its tools do count
//! only if the configuration trusts it, and its death fails the calls it was running as `transient`.
//!
//! In the other direction, a [`Gateway`] serves the tools of an engine, whatever they are; see [`gateway`].

pub mod client;
mod envelope;
mod frame;
pub mod gateway;
mod out;

pub use client::{
    Pinning, Refused, ServerConfig, ServerConfinement, ServerLimits, ServerState, ServerStatus, Servers,
    StartError, is_inherited,
};
pub use gateway::{
    ClientLimits, Clients, Connections, Gateway, HttpError, HttpOptions, Mounted, Seat, ServeError,
};

/// The log filter that shows everything that servers write to stderr. An error that quotes only some of it names this.
pub const STDERR_LOG: &str = "toolyard_mcp=info";

/// Metadata key under which an output keeps the parts of a server's answer that are more than text or an image. Each is
/// `{"at": place, "part": as it came}`. The client writes them, and the gateway passes them on.
const PARTS: &str = "mcp.content";

/// The Rust of the guide's page about MCP, run as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/mcp.md")]
struct Guide;
