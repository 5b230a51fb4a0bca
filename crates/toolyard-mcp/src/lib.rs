//! Tools of MCP servers, as tools of an engine.
//!
//! ```text
//!   ServerConfig ─► Servers::start ─┬─ supervisor ─► process ─► transport ─► rmcp ─► connection
//!                                   │      ▲ restart with backoff, give up            │ list, call
//!                                   └─ tools() ─► engine ─► RemoteTool::execute ──────┘
//! ```
//!
//! A server is a program that somebody else wrote. What it says is bounded before it is read, its word on what its
//! tools do counts only when the configuration trusts it, and its death is a `transient` failure of the calls it had.

pub mod client;

pub use client::{Pinning, Refused, ServerConfig, ServerStatus, Servers, StartError, State};
