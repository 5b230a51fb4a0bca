//! The tools of a server, and calls to them.

pub(crate) mod class;
pub(crate) mod connection;
pub(crate) mod definition;
pub(crate) mod listing;
pub(crate) mod pins;
pub(crate) mod remote_tool;
pub(crate) mod roster;
pub(crate) mod shared;

pub(crate) use connection::{Connection, Service};
pub(crate) use definition::Definitions;
pub use definition::Refused;
pub(crate) use listing::ListError;
pub(crate) use pins::Pins;
pub(crate) use roster::Roster;
pub use shared::ServerState;
pub(crate) use shared::Shared;
