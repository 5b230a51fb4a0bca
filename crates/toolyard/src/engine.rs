//! What an embedder holds: the engine. Wiring only; the rooms are the other modules.

mod builder;
mod gauges;
mod guards;
mod in_air;
mod shutdown;
mod status;

pub use builder::{BuildError, EngineBuilder};
pub use gauges::Gauges;
pub use guards::{BreakerOf, BreakerStatus};
pub use shutdown::DrainReport;
pub use status::{Bound, EngineStatus, Holder, HolderState, Missing, Waiting, Who};

use in_air::InAir;

use crate::{
    admission::{Admission, UnitId},
    attempt::{Backend, Blocking, Runners},
    batch::{BatchState, Stop, Waits},
    chance::Chance,
    clock::Clock,
    config::{Budgets, Drain, OnSerialFailure},
    events::{EventBus, Sequence, Subscription},
    gate::Gate,
    pool::{Leases, PoolError, Pools},
    redact::Redactor,
    registry::{Registry, ToolEntry},
    session::{Numbers, Scopes, Session, SessionCore, SessionOptions, ToolUnits},
    tasks::Tasks,
    telemetry::Content,
};
use foldhash::HashMap;
use std::{
    fmt,
    num::NonZeroUsize,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use toolyard_core::{
    AgentPath, Event, EventKind, PathScope, Resources, RuntimePolicy, SessionId, ToolClass,
    event::ENGINE_SESSION,
};

/// What every part of an engine reaches.
pub(crate) struct EngineCore {
    pub(crate) registry: Registry,
    pub(crate) gate: Gate,
    pub(crate) content: Content,
    pub(crate) admission: Arc<Admission>,
    pub(crate) leases: Arc<Leases>,
    pub(crate) read: UnitId,
    pub(crate) bus: EventBus,
    /// What keeps secrets out of what calls show; `None` where nobody asked for that.
    pub(crate) redactor: Option<Redactor>,
    /// Numbers the events of the engine itself.
    sequence: Sequence,
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) blocking: Arc<dyn Blocking>,
    pub(crate) tasks: Tasks,
    pub(crate) runners: Arc<Runners>,
    pub(crate) in_air: InAir,
    pub(crate) grace: Duration,
    /// Fires when a drain leaves handlers no more time to stop.
    pub(crate) abandon: CancellationToken,
    /// How many handlers were told to stop and were given up.
    pub(crate) abandoned: AtomicUsize,
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) tree_max_in_flight: Option<NonZeroUsize>,
    pub(crate) waits: Waits,
    pub(crate) budgets: Budgets,
    /// Serial scopes with a name.
    pub(crate) scopes: Scopes,
    /// Limits of tools that count over the whole engine.
    pub(crate) tools: ToolUnits,
    pub(crate) on_serial_failure: OnSerialFailure,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Arc<dyn PathScope>>,
    sessions: Mutex<Sessions>,
    opened: AtomicU64,
}

impl Drop for EngineCore {
    fn drop(&mut self) {
        self.runners.close();
    }
}

/// The open sessions, by name.
#[derive(Default)]
struct Sessions {
    open: HashMap<SessionId, Named>,
    stopped: Option<Stop>,
}

/// What a session name leads to.
#[derive(Default)]
struct Named {
    core: Weak<SessionCore>,
    numbers: Arc<Numbers>,
    /// Sessions of this name that have not told of their end: the one that is open, and those that close.
    untold: usize,
}

impl EngineCore {
    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The open session of this name, or a new one.
    fn open(self: &Arc<Self>, id: SessionId, options: SessionOptions) -> Session {
        let (core, stopped) = {
            let mut sessions = self.sessions();
            let stopped = sessions.stopped;
            let named = sessions.open.entry(id.clone()).or_default();
            let core = named.core.upgrade().unwrap_or_else(|| {
                let number = self.opened.fetch_add(1, Ordering::Relaxed);
                let core = SessionCore::open(self, number, id, options, named.numbers.clone());
                named.core = Arc::downgrade(&core);
                named.untold += 1;
                core
            });
            (core, stopped)
        };
        core.announce();
        if let Some(why) = stopped {
            core.stop(why);
        }
        Session { core }
    }

    /// A session has told of its end. When none of its name is left the name is free again, and its numbers begin
    /// anew.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut sessions = self.sessions();
        let Some(named) = sessions.open.get_mut(session) else { return };
        named.untold -= 1;
        if named.untold == 0 {
            sessions.open.remove(session);
        }
    }

    fn open_sessions(&self) -> Vec<Arc<SessionCore>> {
        let mut sessions: Vec<_> =
            self.sessions().open.values().filter_map(|named| named.core.upgrade()).collect();
        sessions.sort_unstable_by_key(|session| session.root());
        sessions
    }

    /// The batches in the air.
    fn batches(&self) -> Vec<Arc<BatchState>> {
        self.open_sessions().iter().flat_map(|session| session.batches()).collect()
    }

    /// Tells of the engine itself, under a session name of its own.
    pub(crate) fn emit(&self, kind: EventKind) {
        if self.bus.is_listening() {
            let event = Event::new(SessionId::from(ENGINE_SESSION), AgentPath::root(), kind);
            self.sequence.publish(&self.bus, &self.clock, event);
        }
    }

    /// Stops every batch, those in the air and those to come.
    fn stop(&self, why: Stop) {
        self.sessions().stopped.get_or_insert(why);
        self.open_sessions().iter().for_each(|session| session.stop(why));
    }
}

/// Runs the tool calls of agents: concurrently, in the order the model meant, bounded, one result per call.
///
/// Cheap to clone; clones are the same engine. It lives in the tokio runtime in which it was built.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Call, Drain, Engine, ToolContext, ToolSpec, tool_fn};
/// let greet = tool_fn(ToolSpec::pure("greet"), |(): (), _: ToolContext| async { Ok("hello") });
/// let engine = Engine::builder().tool(greet).build().await.unwrap();
/// let outcome = engine.session("demo").call(Call::new("call_1", "greet", "{}")).await;
/// assert_eq!(outcome.to_text(), "hello");
/// engine.shutdown(Drain::default()).await;
/// # }
/// ```
#[derive(Clone)]
pub struct Engine {
    core: Arc<EngineCore>,
    pools: Arc<Pools>,
}

impl Engine {
    /// An engine to be built.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// The session of this name, opened with the engine's settings if it is not open. It closes when its last
    /// clone and its last call are gone. The name `@engine` is that of the engine's own events.
    pub fn session(&self, id: impl Into<SessionId>) -> Session {
        self.session_with(id, SessionOptions::default())
    }

    /// The session of this name. The settings count when this call opens it; an open session keeps its own.
    pub fn session_with(&self, id: impl Into<SessionId>, options: SessionOptions) -> Session {
        self.core.open(id.into(), options)
    }

    /// Cancels every call that is in the air in the session of this name and its forks, and no later one; gives how
    /// many there were, none where no such session is open. See [`Session::cancel_calls`].
    pub fn cancel_session_tools(&self, session: &SessionId) -> usize {
        let core = self.core.sessions().open.get(session).and_then(|named| named.core.upgrade());
        core.map_or(0, |core| Session { core }.cancel_calls())
    }

    /// What takes secrets out of what the engine shows, if something does: for what is shown beside results and events.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.core.redactor.as_ref()
    }

    /// The tools, to be looked at and changed while calls fly.
    pub fn registry(&self) -> &Registry {
        &self.core.registry
    }

    /// The tools that a session can call, by name: those that are not hidden from it and within its capabilities. What
    /// to declare to its model (PO-1b).
    pub fn definitions_for(&self, session: &Session) -> Vec<Arc<ToolEntry>> {
        let can_call = |entry: &Arc<ToolEntry>| session.core.sees(entry) && session.core.may.calls(entry);
        let mut entries = self.core.registry.list();
        entries.retain(can_call);
        entries
    }

    /// Puts another policy in force, for calls to come and those that wait: what it does not allow ends as
    /// `permission_denied`, questions about it included; calls that run go on. A call that was approved under the policy
    /// before and waits has to be sent again (PO-4). Gives the new policy's version; the first is 1.
    pub fn set_policy(&self, policy: impl RuntimePolicy + 'static) -> u64 {
        let version = self.core.gate.rules.set_policy(Arc::new(policy)).into();
        self.core.emit(EventKind::PolicyChanged { version });
        version
    }

    /// A view of the events from now on. A slow reader misses some and never slows the engine (OB-3).
    pub fn subscribe(&self) -> Subscription {
        self.core.bus.subscribe()
    }

    /// Waits until what has been told so far is written by every [`EventWriter`](crate::EventWriter), at most 10 s;
    /// `false` when something is not. A [`shutdown`](Self::shutdown) does this by itself.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn events_written(&self) -> bool {
        self.core.bus.written().await
    }

    /// How the engine stands: the pools with their width, state, calls that run and wait; and who waits for what.
    /// The latter takes the engine's admission for as long as it takes to look at everybody who waits for something
    /// else, and no longer for many calls than for one that wait for the same.
    ///
    /// # Errors
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn status(&self) -> Result<EngineStatus, PoolError> {
        status::status(&self.core, &self.pools).await
    }

    /// Sets the width of a pool while calls fly; answers the width before. Calls that run over a narrower
    /// width go on.
    ///
    /// # Errors
    /// [`PoolError::Width`] for width 0 and for the serial lease, whose width is 1 (CL-6);
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn resize(&self, class: ToolClass, width: usize) -> Result<usize, PoolError> {
        let before = self.pools.resize(class, width).await?;
        self.core.emit(EventKind::PoolResized { class, from: before, to: width });
        Ok(before)
    }

    /// Lets new calls of a class wait; those that run go on.
    ///
    /// # Errors
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn pause(&self, class: ToolClass) -> Result<(), PoolError> {
        self.pools.pause(class, true).await
    }

    /// Lets calls of a paused class go on.
    ///
    /// # Errors
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn resume(&self, class: ToolClass) -> Result<(), PoolError> {
        self.pools.pause(class, false).await
    }

    /// Stops the engine in the order of SC-8: new calls and those that wait are answered `shutting_down`, those
    /// that run may finish, then are told to stop, then are given up; every call has its result. A second
    /// call finds nothing left to do.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the engine where it is in that order, refusing new calls.
    pub async fn shutdown(&self, drain: Drain) -> DrainReport {
        shutdown::shutdown(&self.core, &self.pools, drain).await
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("registry", &self.core.registry).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
