//! What is held of an agent that runs.

use super::agent::AgentMessage;
use crate::{AgentCounts, AgentReport, ModelUse};
use ractor::ActorRef;
use std::{fmt, time::Duration};
use tokio::sync::watch;
use toolyard::AgentPath;

/// Where an agent is in its life (AG-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPhase {
    /// Its program is being started.
    Starting,
    /// It runs.
    Running,
    /// It has nothing more to ask, or was told to end.
    Stopping,
    /// It has ended.
    Exited,
}

impl AgentPhase {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Exited => "exited",
        }
    }
}

/// What an agent does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentStatus {
    /// Who it is.
    pub agent: AgentPath,
    /// Its profile.
    pub profile: String,
    /// Its process, once that is known.
    pub pid: Option<u32>,
    /// Where it is in its life.
    pub phase: AgentPhase,
    /// What it has done so far.
    pub counts: AgentCounts,
    /// What it has asked of each of its models.
    pub models: Vec<ModelUse>,
    /// How long it has lived.
    pub lived: Duration,
}

impl AgentStatus {
    /// An agent that has done nothing yet.
    pub fn new(agent: AgentPath, phase: AgentPhase) -> Self {
        Self {
            agent,
            profile: String::new(),
            pid: None,
            phase,
            counts: AgentCounts::default(),
            models: Vec::new(),
            lived: Duration::ZERO,
        }
    }

    /// How many requests its models have answered.
    pub fn model_requests(&self) -> u64 {
        self.models.iter().map(|model| model.requests).sum()
    }
}

/// An agent that was started. Dropping it ends the agent at once.
#[must_use = "dropping it ends the agent"]
pub struct AgentHandle {
    agent: AgentPath,
    actor: ActorRef<AgentMessage>,
    ended: watch::Receiver<Option<AgentReport>>,
}

impl AgentHandle {
    pub(super) fn new(
        agent: AgentPath,
        actor: ActorRef<AgentMessage>,
        ended: watch::Receiver<Option<AgentReport>>,
    ) -> Self {
        Self { agent, actor, ended }
    }

    /// Who it is.
    pub fn agent(&self) -> &AgentPath {
        &self.agent
    }

    /// Tells it to end within this time; then it is ended. Returns at once.
    pub fn stop(&self, grace: Duration) {
        let _ = self.actor.cast(AgentMessage::Stop(grace)); // it may have ended
    }

    /// Waits until it has ended, with all that it started.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn ended(&mut self) -> AgentReport {
        let ended = self.ended.wait_for(Option::is_some).await;
        // Its actor always tells, unless its runtime has gone.
        ended.ok().and_then(|report| report.clone()).unwrap_or_else(|| AgentReport::lost(self.agent.clone()))
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

impl fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentHandle").field("agent", &self.agent).finish_non_exhaustive()
    }
}
