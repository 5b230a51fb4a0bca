//! HTTP to a server, which rmcp does not bound yet: when it does, this room can go.

pub(crate) mod connect;
mod guard;
pub(crate) mod tail;
#[cfg(feature = "https")]
pub(crate) mod tls;
pub(crate) mod web;

pub(crate) use connect::connect;
