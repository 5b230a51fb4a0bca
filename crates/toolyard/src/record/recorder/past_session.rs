//! What a recorder knows of sessions, also of those of earlier lives of the engine (JR-10).

use std::sync::Arc;
use toolyard_core::{AgentPath, Call, SessionId};

/// A session, as it was opened last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSession {
    /// Its name.
    pub session: SessionId,
    /// Whether somebody has named it (SM-8).
    pub is_named: bool,
    /// Whether it was cancelled as a whole since: whoever had it has closed it.
    pub is_cancelled: bool,
    /// What it was [described](crate::SessionOptions::described) by.
    pub description: Option<Arc<str>>,
    /// Its agents that have names and that no handler has made: parents
    /// before their sub-agents.
    pub agents: Vec<PastAgent>,
}

/// A sub-agent that somebody has named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastAgent {
    /// Its path.
    pub agent: AgentPath,
    /// What it was [described](crate::ForkPolicy::described) by.
    pub description: Option<Arc<str>>,
}

/// The batch that a request has brought.
#[derive(Debug, Clone, PartialEq)]
pub struct PastRequest {
    /// The turn that it belongs to.
    pub turn: u64,
    /// Its agent.
    pub agent: AgentPath,
    /// Its calls, as its caller sent them.
    pub calls: Vec<Call>,
}
