//! Supervised agents (AG-8).
//!
//! ```text
//!   Supervisor ─► supervisor actor ─┬─ agent actor ─┬─ its program, under a helper       starting
//!                                   │               ├─ its conversation, in a task       running
//!                                   │               ├─ its standard error, in a task     stopping
//!                                   │               └─ the proxy of its models           exited ─► AgentReport
//!                                   └─ agent actor …
//! ```
//!
//! An agent is a fork of a session, so its calls are within what that may do, and share its order. Nothing is restarted by
//! itself: an agent that runs again repeats what it has done, but for what is [recorded](SupervisorOptions::recorded).

mod actor;
mod agent;
mod handle;

pub use handle::{AgentHandle, AgentPhase, AgentStatus};

use crate::{
    AgentReport,
    audit::Audit,
    deltas::Deltas,
    lines::LongLines,
    process::{Means, scripts},
    profile::Profile,
    recorded::Recorded,
    room::Kept,
    talk::AnswersRoom,
    tools::{Kinship, files::HostFiles},
};
use actor::{StartAgent, SupervisorActor, SupervisorMessage};
use parking_lot::Mutex;
use ractor::{Actor, ActorRef, rpc::CallResult};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::OnceCell;
use toolyard::{EventSink, ForkError, ForkPolicy, Session, ToolFactory};

/// The most agents at once, unless another number is set.
const AGENTS_MAX: usize = 1_000;

/// How many ends of agents are remembered.
const REPORTS_MAX: usize = 10_000;

/// How agents are supervised.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SupervisorOptions {
    /// The profiles, by their names.
    pub profiles: BTreeMap<String, Profile>,
    /// By what agents are started.
    pub means: Means,
    /// Where it is written what they do.
    pub audit: Option<Audit>,
    /// The most agents at once.
    pub agents_max: usize,
    /// Where relative paths of the tools `Read` and `Write` begin; absolute. It should be that of the session's
    /// [`HostPaths`](crate::HostPaths).
    pub directory: std::path::PathBuf,
    /// What the tool `Write` does not write, wherever it lies (SB-11).
    pub guarded: Vec<std::path::PathBuf>,
    /// What agents that are started again under their names were answered before.
    pub recorded: Option<Arc<dyn Recorded>>,
}

impl SupervisorOptions {
    /// Agents of these profiles, started by these means.
    pub fn new(profiles: BTreeMap<String, Profile>, means: Means) -> Self {
        Self {
            profiles,
            means,
            audit: None,
            agents_max: AGENTS_MAX,
            directory: "/".into(),
            guarded: Vec::new(),
            recorded: None,
        }
    }
}

/// Starts agents and watches over them. Cheap to clone.
///
/// It is made before its engine, which needs its [tools](Self::tools) and [sinks](Self::sink).
#[derive(Clone)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

/// What a supervisor, its actors and its tools share.
pub(crate) struct Shared {
    pub(crate) options: SupervisorOptions,
    pub(crate) deltas: Deltas,
    pub(crate) long_lines: LongLines,
    pub(crate) answers: AnswersRoom,
    pub(crate) files: HostFiles,
    pub(crate) kinship: Kinship,
    /// How many agents have been started.
    launched: AtomicU64,
    /// How agents have ended, the latest last.
    reports: Mutex<VecDeque<AgentReport>>,
    /// How many have ended.
    ended: AtomicU64,
    actor: OnceCell<ActorRef<SupervisorMessage>>,
}

/// Why an agent was not started.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no such profile.
    #[error("there is no profile '{0}'")]
    NoProfile(String),
    /// There are as many agents as there may be.
    #[error("{0} agents run already, which is the most")]
    TooMany(usize),
    /// Its session has no room for it.
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// Its program could not be started.
    #[error("it could not be started: {0}")]
    Program(String),
    /// The supervisor has been stopped.
    #[error("the supervisor has been stopped")]
    Stopped,
}

impl Supervisor {
    /// A supervisor of these agents, none of which runs yet.
    pub fn new(options: SupervisorOptions) -> Self {
        let programs = options.profiles.values().flat_map(scripts);
        let files = HostFiles::new(options.guarded.iter().cloned().chain(programs).collect());
        let shared = Shared {
            options,
            deltas: Deltas::default(),
            long_lines: LongLines::default(),
            answers: AnswersRoom::default(),
            files,
            kinship: Kinship::default(),
            launched: AtomicU64::new(0),
            reports: Mutex::default(),
            ended: AtomicU64::new(0),
            actor: OnceCell::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The tools of agents: `Read`, `Write`, `Echo` and `Agent`.
    pub fn tools(&self) -> Vec<Arc<dyn ToolFactory>> {
        crate::tools::all(self)
    }

    /// What has to hear of the engine's events, so that agents that want it get output before its call ends.
    pub fn sink(&self) -> impl EventSink + use<> {
        self.shared.deltas.clone()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Starts an agent of this profile as a fork of `session`, under this name if it gets one.
    ///
    /// # Errors
    /// [`StartError`]. A program that turns out not to be startable later is an agent that has ended
    /// [so](crate::AgentEnd::NotStarted).
    ///
    /// # Cancel safety
    /// Dropping the future may leave an agent that is ended at once.
    pub async fn start(
        &self,
        session: &Session,
        profile: &str,
        name: Option<&str>,
        input: Option<Value>,
    ) -> Result<AgentHandle, StartError> {
        let found = self.profile(profile)?.clone();
        let policy = self.policy(&found, name);
        let session = session.fork(policy)?;
        self.launch(session, profile, found, input).await
    }

    pub(crate) fn profile(&self, name: &str) -> Result<&Profile, StartError> {
        self.shared.options.profiles.get(name).ok_or_else(|| StartError::NoProfile(name.to_owned()))
    }

    /// What the session of an agent differs in from that of its parent.
    pub(crate) fn policy(&self, profile: &Profile, name: Option<&str>) -> ForkPolicy {
        let mut policy = ForkPolicy::default().capabilities(profile.capabilities());
        if let Some(most) = profile.limits.max_in_flight {
            policy = policy.max_in_flight(most.get());
        }
        match name {
            Some(name) => policy.name(name),
            None => policy,
        }
    }

    /// Starts an agent in its own session.
    pub(crate) async fn launch(
        &self,
        session: Session,
        name: &str,
        profile: Profile,
        input: Option<Value>,
    ) -> Result<AgentHandle, StartError> {
        let order = StartAgent { session, name: name.to_owned(), profile, input: input.map(Arc::new) };
        let order = Box::new(order);
        match self.actor().await?.call(|reply| SupervisorMessage::Start(order, reply), None).await {
            Ok(CallResult::Success(started)) => started,
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => Err(StartError::Stopped),
        }
    }

    async fn actor(&self) -> Result<&ActorRef<SupervisorMessage>, StartError> {
        let spawn = async || {
            let spawned = Actor::spawn(None, SupervisorActor, Arc::downgrade(&self.shared)).await;
            spawned.map(|(actor, _)| actor).map_err(|_| StartError::Stopped)
        };
        self.shared.actor.get_or_try_init(spawn).await
    }

    /// What each agent that has not ended does, in the order of their starts.
    pub async fn status(&self) -> Vec<AgentStatus> {
        let Some(actor) = self.shared.actor.get() else { return Vec::new() };
        match actor.call(SupervisorMessage::Status, None).await {
            Ok(CallResult::Success(status)) => status,
            Ok(CallResult::Timeout | CallResult::SenderError) | Err(_) => Vec::new(),
        }
    }

    /// How agents have ended, those that others have started too, in the order of their ends: the last 10 000. What the latter
    /// gave with their bye their parents have.
    pub fn reports(&self) -> Vec<AgentReport> {
        self.shared.reports.lock().iter().cloned().collect()
    }

    /// How many agents have ended, those that others have started too.
    pub fn ended(&self) -> u64 {
        self.shared.ended.load(Ordering::Relaxed)
    }

    /// Tells all agents to end within this time; those that do not are ended. Returns when none is left. No agent is
    /// started from now on.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the agents as they were told.
    pub async fn stop(&self, grace: Duration) {
        let Some(actor) = self.shared.actor.get() else { return };
        let stopped = actor.call(|reply| SupervisorMessage::Stop(grace, reply), None).await;
        drop(stopped); // an error means that it has been stopped before
    }
}

impl fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervisor").finish_non_exhaustive()
    }
}

impl Shared {
    /// An agent runs: what it may do can be looked up.
    /// Returns the number by which it is forgotten.
    fn remember(&self, session: &Session, profile: Profile, kept: Kept) -> u64 {
        let number = self.launched.fetch_add(1, Ordering::Relaxed);
        let kin = self.kinship.add(session, profile, kept, number);
        let grants = kin.capabilities.fs_grants().unwrap_or_default();
        self.files.add(
            (session.id().clone(), session.agent().clone()),
            number,
            &self.options.directory,
            grants,
        );
        number
    }

    /// An agent has ended.
    fn report(&self, report: AgentReport) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        let mut report = report;
        // What an agent gave to one that started it is that one's affair.
        if report.agent.as_str().matches('/').count() > 1 {
            report.result = None;
        }
        let mut reports = self.reports.lock();
        if reports.len() == REPORTS_MAX {
            reports.pop_front();
        }
        reports.push_back(report);
    }

    /// It has ended.
    fn forget(&self, session: &Session, number: u64) {
        self.kinship.remove(session, number);
        self.files.remove(&(session.id().clone(), session.agent().clone()), number);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(actor) = self.actor.get() {
            actor.stop(None); // with it, all that it has started
        }
    }
}
