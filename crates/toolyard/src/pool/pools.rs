//! The engine's handle to the pools, and the guard that restarts the supervisor.

use super::actor::{Applied, PoolMessage};
use super::deaths::Deaths;
use super::supervisor::{Supervisor, SupervisorMessage, SupervisorSetup};
use super::{PoolLeases, PoolState, PoolStatus};
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use ractor::{Actor, ActorRef, RpcReplyPort, rpc::CallResult};
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};
use toolyard_admission::Admission;
use toolyard_core::ToolClass;

/// How long an operator's request to a pool may take, including a restart.
const CALL_WITHIN: Duration = Duration::from_secs(5);

/// Why a pool did not do what was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The serial lease has width 1 (CL-6), and no pool has width 0.
    #[error("a {class} pool cannot have width {width}")]
    Width {
        /// The pool.
        class: ToolClass,
        /// The requested width.
        width: usize,
    },
    /// The pool's actor has stopped or did not answer in time.
    #[error("the {class} pool did not answer; the engine is stopping or has failed")]
    Away {
        /// The pool.
        class: ToolClass,
    },
}

/// The engine's handle to its pools.
pub(crate) struct Pools {
    setup: Arc<SupervisorSetup>,
    supervisor: Arc<Current>,
    guard: Mutex<Option<JoinHandle<()>>>,
}

/// The current supervisor, replaced when it is restarted.
type Current = ArcSwap<ActorRef<SupervisorMessage>>;

impl Pools {
    /// Starts the supervisor and one pool actor per class. `on_failure` is called when a pool is given up.
    pub(crate) async fn start(
        admission: Arc<Admission>,
        leases: Arc<PoolLeases>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self, ractor::SpawnErr> {
        let setup = SupervisorSetup::new(admission, leases, on_failure);
        let (actor, stopped) = Actor::spawn(None, Supervisor, setup.clone()).await?;
        let supervisor = Arc::new(ArcSwap::from_pointee(actor));
        let guard = tokio::spawn(guard(setup.clone(), supervisor.clone(), stopped));
        Ok(Self { setup, supervisor, guard: Mutex::new(Some(guard)) })
    }

    fn supervisor(&self) -> ActorRef<SupervisorMessage> {
        ActorRef::clone(&self.supervisor.load())
    }

    fn is_unavailable(&self, class: ToolClass) -> bool {
        self.setup.is_stopping()
            || self.setup.leases.get(class).state == PoolState::Failed
            || self.guard.lock().as_ref().is_some_and(JoinHandle::is_finished) // the runtime has shut down
    }

    /// Sends a message to the pool of a class and returns the reply. Waits for a restart if one is under way.
    async fn ask<R: Send + 'static>(
        &self,
        class: ToolClass,
        message: impl Fn(RpcReplyPort<R>) -> PoolMessage,
    ) -> Result<R, PoolError> {
        let give_up_at = Instant::now() + CALL_WITHIN;
        while !self.is_unavailable(class) && Instant::now() < give_up_at {
            let find = |reply| SupervisorMessage::Find(class, reply);
            if let Ok(CallResult::Success(pool)) = self.supervisor().call(find, Some(CALL_WITHIN)).await
                && let Ok(CallResult::Success(answer)) = pool.call(&message, Some(CALL_WITHIN)).await
            {
                return Ok(answer);
            }
            tokio::task::yield_now().await; // the actor above has yet to learn of the death
        }
        Err(PoolError::Away { class })
    }

    /// Sets the width of a class. Returns the previous width once the new one is in force; the calls that it unblocks
    /// are granted in slices afterwards (CC-3).
    pub(crate) async fn resize(&self, class: ToolClass, width: usize) -> Result<usize, PoolError> {
        if width == 0 || class == ToolClass::Serial {
            return Err(PoolError::Width { class, width });
        }
        let applied = Applied::default();
        let asked = self.ask(class, |reply| PoolMessage::Resize(width, applied.clone(), reply)).await;
        asked.or_else(|away| applied.get().copied().ok_or(away))
    }

    /// Pauses granting for a class, or resumes it. As with [`Pools::resize`], the answer comes once this is in force.
    pub(crate) async fn pause(&self, class: ToolClass, paused: bool) -> Result<(), PoolError> {
        let applied = Applied::default();
        let asked = self.ask(class, |reply| PoolMessage::Pause(paused, applied.clone(), reply)).await;
        asked.or_else(|away| applied.get().copied().ok_or(away))
    }

    /// Refuses new calls of every class.
    pub(crate) async fn drain(&self) {
        for class in ToolClass::ALL {
            // A pool that does not answer admits nothing either.
            let _ = self.ask(class, PoolMessage::Drain).await;
        }
    }

    /// The status of every pool.
    pub(crate) async fn status(&self) -> Result<Vec<PoolStatus>, PoolError> {
        let mut pools = Vec::with_capacity(ToolClass::ALL.len());
        for class in ToolClass::ALL {
            pools.push(self.ask(class, PoolMessage::Status).await?);
        }
        Ok(pools)
    }

    /// Stops the actors, children first, and waits until they have stopped.
    pub(crate) async fn stop(&self) {
        let guard = self.guard.lock().take();
        if let Some(guard) = guard {
            self.setup.is_stopping.store(true, Ordering::SeqCst);
            if guard.is_finished() {
                return; // the actors have ended with their runtime, or were given up
            }
            self.supervisor().stop_children_and_wait(None, Some(CALL_WITHIN)).await;
            self.supervisor().stop(None);
            let _ = guard.await;
        }
    }

    /// Kills one of the actors as a bug would.
    #[cfg(test)]
    pub(crate) fn kill(&self, victim: Victim) {
        let _ = self.supervisor().cast(SupervisorMessage::Kill(victim));
    }
}

/// The actor to kill.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    Supervisor,
    Pool(ToolClass),
}

impl Drop for Pools {
    fn drop(&mut self) {
        self.setup.is_stopping.store(true, Ordering::SeqCst);
        self.supervisor().stop(None);
    }
}

/// Restarts the supervisor with its pools when it dies, or gives them up. This is a task and not another actor: an
/// actor that dies kills its subtree (RA-1), so it would need a guard as well.
async fn guard(setup: Arc<SupervisorSetup>, supervisor: Arc<Current>, mut stopped: JoinHandle<()>) {
    let mut deaths = Deaths::default();
    loop {
        let _ = stopped.await;
        if setup.is_stopping() {
            return;
        }
        if deaths.exceeds_limit(Instant::now()) {
            break;
        }
        ToolClass::ALL.iter().for_each(|class| setup.leases.change(*class, |lease| lease.restarts += 1));
        let Ok((actor, handle)) = Actor::spawn(None, Supervisor, setup.clone()).await else { break };
        supervisor.store(Arc::new(actor));
        stopped = handle;
        if setup.is_stopping() {
            supervisor.load().stop(None); // `stop` may have stopped only the previous supervisor
        }
    }
    ToolClass::ALL.iter().for_each(|class| setup.give_up(*class));
}
