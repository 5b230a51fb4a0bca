//! The client half: starts, watches and calls servers.

mod answer;
mod caller;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
mod calls;
mod changes;
mod class;
pub(crate) mod clean;
mod complaint;
mod config;
mod connection;
mod definition;
mod describe;
mod environment;
mod form;
mod greeting;
mod group;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
mod handler;
mod handshake;
#[cfg(feature = "http")]
mod http;
mod input;
mod inspect;
mod intake;
mod line;
mod listing;
mod pins;
mod process;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
mod prompt;
#[expect(deprecated, reason = "newer protocols deprecate what servers still use")]
mod questions;
#[cfg(feature = "http")]
mod remote;
mod remote_tool;
mod restarts;
mod roster;
mod scan;
mod servers;
mod shared;
mod size;
mod start;
mod stderr;
mod supervisor;
#[cfg(feature = "http")]
mod tail;
#[cfg(feature = "https")]
mod tls;
mod transport;
#[cfg(feature = "http")]
mod web;

pub use config::{Pinning, ServerConfig};
pub use definition::Refused;
pub use environment::is_inherited;
pub use servers::{ServerStatus, Servers, StartError};
pub use shared::State;
