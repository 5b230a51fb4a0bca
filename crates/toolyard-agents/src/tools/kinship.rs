//! Which agents run, what each may do, and whose children they are.

use crate::{profile::Profile, room::Kept};
use dashmap::DashMap;
use std::sync::Arc;
use toolyard::{AgentPath, Capabilities, Session, SessionId};

/// An agent that runs.
#[derive(Debug, Clone)]
pub(crate) struct Kin {
    /// What it was started from, within what its parent may.
    pub(crate) profile: Arc<Profile>,
    /// What its calls may touch, with that of its parents.
    pub(crate) capabilities: Capabilities,
    /// What it uses is counted in.
    pub(crate) kept: Kept,
    /// Which of the agents it is that have had its name.
    number: u64,
}

/// The agents that run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kinship(Arc<DashMap<(SessionId, AgentPath), Kin>>);

impl Kinship {
    /// An agent runs.
    pub(crate) fn add(&self, session: &Session, profile: Profile, kept: Kept, number: u64) -> Kin {
        let own = profile.capabilities();
        let capabilities = match self.parent(session) {
            Some(parent) => parent.capabilities.both(own),
            None => own,
        };
        let kin = Kin { profile: Arc::new(profile), capabilities, kept, number };
        self.0.insert(place(session), kin.clone());
        kin
    }

    /// The agent that has started this one, if one has.
    pub(crate) fn parent(&self, session: &Session) -> Option<Kin> {
        parent_of(session.agent()).and_then(|parent| self.find(session.id(), &parent))
    }

    /// It has ended. Another one may have its name by now.
    pub(crate) fn remove(&self, session: &Session, number: u64) {
        self.0.remove_if(&place(session), |_, kin| kin.number == number);
    }

    pub(crate) fn find(&self, session: &SessionId, agent: &AgentPath) -> Option<Kin> {
        self.0.get(&(session.clone(), agent.clone())).map(|kin| kin.clone())
    }
}

fn place(session: &Session) -> (SessionId, AgentPath) {
    (session.id().clone(), session.agent().clone())
}

/// The agent above one.
fn parent_of(agent: &AgentPath) -> Option<AgentPath> {
    let (parent, _) = agent.as_str().rsplit_once('/')?;
    Some(AgentPath::from(parent))
}
