//! What is known of a session's name so that it can be opened again.

use std::sync::Arc;
use toolyard::{AgentPath, PastAgent, PastSession, SessionId};

/// The session that was opened last under a name, and the agents that were named since one was cancelled as a whole.
#[derive(Default)]
pub(super) struct Described {
    description: Option<Arc<str>>,
    is_cancelled: bool,
    agents: Vec<PastAgent>,
}

impl Described {
    pub(super) fn opened(&mut self, description: Option<Arc<str>>) {
        // Others open it too, who do not describe it: it stays what it was.
        if description.is_some() || self.description.is_none() {
            (self.description, self.is_cancelled) = (description, false);
        }
    }

    pub(super) fn forked(&mut self, agent: &AgentPath, description: Option<Arc<str>>) {
        self.agents.retain(|known| known.agent != *agent);
        self.agents.push(PastAgent { agent: agent.clone(), description });
    }

    pub(super) fn cancelled(&mut self) {
        self.is_cancelled = true;
        self.agents.clear();
    }

    pub(super) fn past(&self, session: &SessionId, is_named: bool) -> PastSession {
        let mut agents = self.agents.clone();
        agents.sort_by(|one, other| {
            let (one, other) = (one.agent.as_str(), other.agent.as_str());
            one.len().cmp(&other.len()).then_with(|| one.cmp(other))
        });
        let (description, is_cancelled) = (self.description.clone(), self.is_cancelled);
        if description.is_none() {
            agents.clear(); // nobody opens it again by what it was
        }
        PastSession { session: session.clone(), is_named, is_cancelled, description, agents }
    }
}
