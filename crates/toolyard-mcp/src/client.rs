//! The client's half: servers started, watched and called.

mod answer;
mod changes;
mod class;
mod clean;
mod config;
mod connection;
mod definition;
mod environment;
mod frame;
mod greeting;
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
#[cfg(feature = "http")]
mod remote;
mod remote_tool;
mod roster;
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
mod told;
mod transport;
mod watched;
mod way;
#[cfg(feature = "http")]
mod web;

pub use config::{Pinning, ServerConfig};
pub use definition::Refused;
pub use servers::{ServerStatus, Servers, StartError};
pub use shared::State;
