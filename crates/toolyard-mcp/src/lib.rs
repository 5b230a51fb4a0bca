//! Tools of MCP servers, as tools of an engine; and the tools of an engine, served to MCP clients.
//!
//! ```text
//!   ServerConfig ─► Servers::start ─┬─ supervisor ─► process ─► transport ─► rmcp ─► connection
//!                                   │      ▲ restart with backoff, give up            │ list, call
//!                                   └─ tools() ─► engine ─► RemoteTool::execute ──────┘
//! ```
//!
//! A server is a program that somebody else wrote. What it says is bounded before it is read, its word on what its
//! tools do counts only when the configuration trusts it, and its death is a `transient` failure of the calls it had.
//!
//! The other way round, a [`Gateway`] stands in front of an engine, whatever its tools are; see [`gateway`].

pub mod client;
mod envelope;
mod frame;
pub mod gateway;
mod out;

pub use client::{Pinning, Refused, ServerConfig, ServerStatus, Servers, StartError, State};
pub use gateway::{Clients, Gateway, HttpError, HttpOptions, ServeError};

/// Under this name the metadata of an output keep those parts of a server's answer that are more than text or picture, as
/// `{"at": place, "part": as it came}`: the client puts them there, the gateway hands them on.
const PARTS: &str = "mcp.content";
