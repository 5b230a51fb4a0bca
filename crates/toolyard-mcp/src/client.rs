//! The client's half: servers started, watched and called.

mod answer;
mod class;
mod clean;
mod config;
mod connection;
mod definition;
mod environment;
mod frame;
mod group;
mod handler;
#[cfg(feature = "http")]
mod http;
mod life;
mod line;
mod listing;
mod pins;
mod process;
mod progress;
mod remote_tool;
mod roster;
mod servers;
mod shared;
mod size;
mod start;
mod stderr;
mod supervisor;
mod transport;
mod watched;

pub use config::{Pinning, ServerConfig};
pub use definition::Refused;
pub use servers::{ServerStatus, Servers, StartError};
pub use shared::State;
