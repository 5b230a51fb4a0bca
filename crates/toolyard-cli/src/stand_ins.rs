//! What answers calls in place of their tools: mocks, and the results of an earlier run (KT-10).
//!
//! ```text
//!   engine ─► StandInBackend ─┬─ [mock.TOOL] ──► Mock: waits, then a text of its arguments or a failure, by lot
//!             (call → key)    ├─ --replay FILE ─► Replay: what the file has for this key
//!                             └─ else ──────────► the tool, in its sandbox ─► --record FILE
//!
//!   key   episode, turn, tool, arguments, and which of the equal calls of the batch it is
//! ```
//!
//! Only what runs is replaced: schema, class, policy, approval, limits and permits are those of the tool.

mod backend;
mod dice;
mod entry;
mod key;
pub(crate) mod latency;
pub(crate) mod mock;
mod record;
mod replay;
pub(crate) mod template;

pub(crate) use key::{EpisodeKey, Ordinals};
pub(crate) use mock::Mock;
pub(crate) use record::RecordFile;
pub(crate) use replay::Replay;

use backend::StandInBackend;
use key::Episodes;
use std::{collections::HashMap, sync::Arc};
use toolyard::{
    AgentPath, Backend, BreakerPolicy, Call, KeySource, Outcome, RetryPolicy, SessionId, Tool, ToolConfig,
    ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait, from_fn,
};

/// What stands in for tools. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct StandIns {
    mocks: Arc<HashMap<String, Mock>>,
    /// From what the lots of mocks are drawn.
    seed: u64,
    replay: Option<Arc<Replay>>,
    episodes: Arc<Episodes>,
}

impl StandIns {
    /// These mocks, with the seed 0.
    pub(crate) fn of(mocks: &[Mock]) -> Self {
        let mocks = mocks.iter().map(|mock| (mock.name.clone(), mock.clone())).collect();
        Self { mocks: Arc::new(mocks), ..Self::default() }
    }

    /// Draws from this seed.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Answers the calls of all tools that are not mocked from an earlier run.
    pub(crate) fn set_replay(&mut self, replay: Arc<Replay>) {
        self.replay = Some(replay);
    }

    /// Whether calls are answered from an earlier run.
    pub(crate) fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Whether this tool is mocked.
    pub(crate) fn is_mock(&self, tool: &str) -> bool {
        self.mocks.contains_key(tool)
    }

    /// What answers the calls of a tool instead of it, in a word for tables.
    pub(crate) fn word(&self, tool: &str) -> Option<&'static str> {
        self.is_mock(tool).then_some("mock")
    }

    /// Tools for the mocks of which no other tool has the name.
    pub(crate) fn tools(&self, taken: impl Fn(&str) -> bool) -> Vec<Arc<dyn ToolFactory>> {
        let mut own: Vec<&Mock> = self.mocks.values().filter(|mock| !taken(&mock.name)).collect();
        own.sort_by(|a, b| a.name.cmp(&b.name));
        own.into_iter().map(|mock| declared(mock.declared.clone())).collect()
    }

    /// The settings of a tool that something stands in for. Retries and the breaker depend on what other calls did and
    /// when, and so would results: they are off where nothing is set for the tool alone, and for a replay altogether.
    pub(crate) fn configured(&self, tool: &str, config: Option<&ToolConfig>) -> Option<ToolConfig> {
        let is_mock = self.is_mock(tool);
        if !is_mock && !self.is_replay() {
            return config.cloned();
        }
        let mut config = config.cloned().unwrap_or_default();
        if !is_mock {
            (config.settings.retry, config.settings.breaker, config.settings.rate) = (None, None, None);
            config.settings.key = Some(KeySource::Caller);
        }
        config.settings.retry.get_or_insert(RetryPolicy::NONE);
        config.settings.breaker.get_or_insert(BreakerPolicy::DISABLED);
        Some(config)
    }

    /// A call as it is dispatched. In a replay it has no key: each call has a result of its own in the file, also one that
    /// shared another's.
    pub(crate) fn dispatched(&self, call: &Call) -> Call {
        let mut call = call.clone();
        if self.is_replay() && !self.is_mock(&call.name) {
            call.idempotency_key = None;
        }
        call
    }

    /// A back-end that answers what is stood in for, and leaves the rest to `inner`.
    pub(crate) fn around(&self, inner: Arc<dyn Backend>) -> Arc<dyn Backend> {
        if self.mocks.is_empty() && self.replay.is_none() {
            return inner;
        }
        Arc::new(StandInBackend::new(self.clone(), inner))
    }

    /// Says which episode a session runs. Any other session, and each of its sub-agents, is an episode of its own name.
    pub(crate) fn begin(&self, session: &SessionId, episode: EpisodeKey) {
        self.episodes.insert(session, episode);
    }

    /// Forgets it, once the session runs no more of it.
    pub(crate) fn end(&self, session: &SessionId) {
        self.episodes.remove(session);
    }

    /// Says which number a turn has that begins in a session.
    pub(crate) fn turn_begins(&self, session: &SessionId, number: u64) {
        self.episodes.turn_begins(session, number);
    }

    /// The episode of a session, and which of its turns has this number.
    pub(crate) fn episode(&self, session: &SessionId, turn: u64) -> (EpisodeKey, u64) {
        self.episodes.get(session, &AgentPath::root(), turn)
    }

    /// Gives the calls of a turn that a replay has answered the ends that they had, which the engine has only in part.
    pub(crate) fn restore(&self, session: &SessionId, turn: u64, outcomes: &mut [Outcome]) {
        if let Some(replay) = &self.replay {
            replay.restore(session, turn, outcomes);
        }
    }
}

/// A tool that nothing runs but a stand-in.
pub(crate) fn declared(spec: ToolSpec) -> Arc<dyn ToolFactory> {
    Arc::new(from_fn(spec, || Absent))
}

struct Absent;

#[async_trait]
impl Tool for Absent {
    async fn execute(&self, _: &serde_json::Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::execution("nothing runs the calls of this tool"))
    }
}
