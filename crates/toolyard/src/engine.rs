//! The engine handle that embedders hold. Wiring only; the work is done in the other modules.

mod build_error;
mod builder;
mod gauges;
mod guards;
mod limits;
mod open;
mod shutdown;
mod status;

pub use build_error::BuildError;
pub use builder::EngineBuilder;
pub use gauges::Gauges;
pub use guards::{BreakerOf, BreakerStatus};
pub use limits::{BudgetOf, BudgetStatus, Quota, RateStatus};
pub use open::AlreadyOpen;
pub use shutdown::DrainReport;
pub use status::{Bound, EngineStatus, Holder, HolderState, Missing, Waiting, Who};

pub(crate) use crate::call::EngineCore;

use crate::{
    config::Drain,
    pool::{PoolError, Pools},
    record::Subscription,
    session::Session,
    tool::{Registry, ToolEntry},
};
use std::{fmt, sync::Arc};
use toolyard_core::{EventKind, RuntimePolicy, SessionId, ToolClass, event::Epoch};
use toolyard_redact::Redactor;

/// Runs the tool calls of agents: concurrently, in the order the model meant, bounded, one result per call.
///
/// Cheap to clone; all clones are the same engine. It lives in the tokio runtime in which it was built; its methods
/// and those of its sessions may be called from anywhere: from another runtime, from one without timers, or from none.
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
    pub(crate) core: Arc<EngineCore>,
    pools: Arc<Pools>,
}

impl Engine {
    /// Starts building an engine.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Cancels every call that is in flight in the session of this name and in its forks, but no later one. Returns
    /// how many there were; 0 if no such session is open. See [`Session::cancel_calls`].
    pub fn cancel_session_tools(&self, session: &SessionId) -> usize {
        let core = self.core.open_session(session);
        core.map_or(0, |core| Session { core }.cancel_calls())
    }

    /// The engine's redactor, if it has one. Use it for what is shown beside results and events.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.core.redactor.as_ref()
    }

    /// The engine's tools. They can be read and changed while calls are in flight.
    pub fn registry(&self) -> &Registry {
        &self.core.registry
    }

    /// The tools that a session can call, by name: those that are not hidden from it and within its capabilities.
    /// The same as [`Session::definitions`].
    pub fn definitions_for(&self, session: &Session) -> Vec<Arc<ToolEntry>> {
        session.definitions()
    }

    /// The name of this life of the engine: no other engine has it. What the engine counts, such as the positions of its
    /// events, is unique together with it (SM-8).
    pub fn epoch(&self) -> Epoch {
        self.core.epoch
    }

    /// Replaces the policy, for new calls and for waiting ones. A waiting call that the new policy does not allow
    /// ends `permission_denied`, even while its approval is pending; running calls are not affected. A waiting call
    /// that was approved under the old policy has to be sent again (PO-4), unless both have the same
    /// [fingerprint](RuntimePolicy::fingerprint) (SM-7). Returns the version of the new policy; the
    /// first policy has version 1.
    pub fn set_policy(&self, policy: impl RuntimePolicy + 'static) -> u64 {
        let announce = |version: u32| self.core.emit(EventKind::PolicyChanged { version: version.into() });
        self.core.rules.set_policy(Arc::new(policy), self.core.redactor.as_ref(), announce).into()
    }

    /// Subscribes to the events from now on. A subscriber takes up to 64 events at once. One that falls more than 4096
    /// behind misses the oldest, and never slows the engine (OB-3). The subscription ends when the engine has
    /// [shut down](Self::shutdown).
    pub fn subscribe(&self) -> Subscription {
        self.core.bus.subscribe()
    }

    /// Waits until every [`EventWriter`](crate::record::EventWriter) has written all events emitted so far, for at most 10 s.
    /// Returns `false` if some are not written. [`shutdown`](Self::shutdown) does this too.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn events_written(&self) -> bool {
        self.core.bus.written(&self.core.tasks).await
    }

    /// Reports the pools (width, state, running and queued calls), the breakers, and who waits for what. The list of
    /// waiters is made under the lock of the engine's admission; that takes time for each group of calls with equal
    /// needs, not for each call in it.
    ///
    /// # Errors
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn status(&self) -> Result<EngineStatus, PoolError> {
        self.core.tasks.within(status::status(&self.core, &self.pools)).await
    }

    /// Sets the width of a pool while calls are in flight, and returns the previous width. When the pool becomes
    /// narrower, calls that already run continue.
    ///
    /// # Errors
    /// [`PoolError::Width`] for width 0 and for the serial lease, whose width is 1 (CL-6);
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn resize(&self, class: ToolClass, width: usize) -> Result<usize, PoolError> {
        let before = self.core.tasks.within(self.pools.resize(class, width)).await?;
        self.core.emit(EventKind::PoolResized { class, from: before, to: width });
        Ok(before)
    }

    /// Stops starting calls of a class; new ones wait. Running calls continue.
    ///
    /// # Errors
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn pause(&self, class: ToolClass) -> Result<(), PoolError> {
        self.core.tasks.within(self.pools.pause(class, true)).await
    }

    /// Starts calls of a paused class again.
    ///
    /// # Errors
    /// [`PoolError::Away`] when the engine has stopped or failed.
    pub async fn resume(&self, class: ToolClass) -> Result<(), PoolError> {
        self.core.tasks.within(self.pools.pause(class, false)).await
    }

    /// Stops the engine in the order of SC-8. New and waiting calls are answered `shutting_down`; running calls may
    /// finish, then are cancelled, then abandoned. Every call gets its result. At the end, everything that waits for
    /// this engine ends too: [subscriptions](Self::subscribe) once they have read the last event,
    /// [`ApprovalDesk::next`](crate::gate::ApprovalDesk::next), and those who [watch](Registry::watch) the registry. A second
    /// call of this method finds nothing to do.
    ///
    /// The times of `drain` are kept by the runtime in which the engine was built. Where that was shut down before, they
    /// are over at once.
    ///
    /// # Cancel safety
    /// If the future is dropped, the engine stays at the step it has reached and keeps refusing new calls.
    pub async fn shutdown(&self, drain: Drain) -> DrainReport {
        self.core.tasks.within(shutdown::shutdown(&self.core, &self.pools, drain)).await
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("registry", &self.core.registry).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
