//! What an embedder is told of each connection.

use std::sync::Arc;

/// One connection of a program, when it has ended (SB-10).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Visit {
    /// The door it came by; `None` if it never said.
    pub door: Option<Door>,
    /// Where it wanted to go: `host:port` of a tunnel, else an origin.
    pub to: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// How many bytes the program has sent, with heads of requests.
    pub bytes_up: u64,
    /// How many bytes the program has got, with heads of responses.
    pub bytes_down: u64,
}

/// A way through a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Door {
    /// `CONNECT`: an opaque tunnel.
    Tunnel,
    /// A request for a whole URL, which is handed on.
    Forward,
    /// A request to the upstream of this name, with its secret.
    Upstream(Arc<str>),
}

/// What became of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It was served, up to its end or to that of the proxy.
    Served,
    /// It was refused, with this sentence, or asked for nothing.
    Refused(String),
    /// The origin could not be reached, or it or the program broke off, as this sentence says.
    Failed(String),
    /// Nothing passed on it for too long.
    Idle,
    /// No more bytes may pass through this proxy.
    Spent,
}

/// Whoever is told of the connections of a proxy.
pub trait Observer: Send + Sync {
    /// A connection has ended, for whatever reason. Called once for each, where it ran: it must not block.
    fn visited(&self, visit: &Visit);
}

/// Nobody who is told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Nobody;

impl Observer for Nobody {
    fn visited(&self, _visit: &Visit) {}
}
