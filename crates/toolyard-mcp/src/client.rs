//! The client half: starts, watches and calls servers.
//!
//! ```text
//!   servers ──► process ──► tools ──► protocol ──► questions ──► text
//!                  └──────────────► http ──┘
//! ```

mod config;
#[cfg(feature = "http")]
mod http;
mod process;
mod protocol;
mod questions;
mod servers;
pub(crate) mod text;
mod tools;

pub use config::{Pinning, ServerConfig, ServerConfinement, ServerLimits};
pub use process::is_inherited;
pub use servers::{ServerStatus, Servers, StartError};
pub use tools::{Refused, ServerState};
