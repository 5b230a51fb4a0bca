//! What an agent does, counted, and told to the audit.

use crate::audit::Audit;
use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};
use toolyard::{AgentPath, Call, Outcome, SessionId};

/// What an agent has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCounts {
    /// Calls that it has sent.
    pub calls: u64,
    /// Those that were answered.
    pub answered: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Lines that were refused.
    pub refused_lines: u64,
}

#[derive(Debug, Default)]
struct Counted {
    calls: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    refused_lines: AtomicU64,
}

/// Sees what one agent does.
#[derive(Debug, Clone)]
pub(crate) struct Observer {
    counted: Arc<Counted>,
    audit: Option<Audit>,
    session: SessionId,
    agent: AgentPath,
    pid: Arc<OnceLock<u32>>,
}

impl Observer {
    pub(crate) fn new(session: &SessionId, agent: &AgentPath, audit: Option<&Audit>) -> Self {
        Self {
            counted: Arc::default(),
            audit: audit.cloned(),
            session: session.clone(),
            agent: agent.clone(),
            pid: Arc::default(),
        }
    }

    /// Its process is known.
    pub(crate) fn runs_as(&self, pid: u32) {
        let _ = self.pid.set(pid); // it has one
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid.get().copied()
    }

    pub(crate) fn counts(&self) -> AgentCounts {
        let Counted { calls, answered, failed, refused_lines } = &*self.counted;
        let [calls, answered, failed, refused_lines] =
            [calls, answered, failed, refused_lines].map(|count| count.load(Ordering::Relaxed));
        AgentCounts { calls, answered, failed, refused_lines }
    }

    /// It has sent a call.
    pub(crate) fn asked(&self) {
        self.counted.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// A line of it was refused.
    pub(crate) fn refused(&self) {
        self.counted.refused_lines.fetch_add(1, Ordering::Relaxed);
    }

    /// A call of it was given to the engine, as this one of this batch.
    pub(crate) fn given(&self, call: &Call, batch: u64, index: usize) {
        if let Some(audit) = &self.audit {
            let place = (self.session.clone(), self.agent.clone(), batch, index);
            audit.given(place, call, self.pid());
        }
    }

    /// A call of it ended that was not given to the engine.
    pub(crate) fn denied(&self, outcome: &Outcome) {
        if let Some(audit) = &self.audit {
            audit.denied(&self.agent, self.pid(), outcome);
        }
    }

    /// A call of it was answered.
    pub(crate) fn answered(&self, outcome: &Outcome) {
        self.counted.answered.fetch_add(1, Ordering::Relaxed);
        if !outcome.success() {
            self.counted.failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
