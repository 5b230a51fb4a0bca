//! The actor above the pools, and the handle the engine holds.

use super::actor::{PoolActor, PoolMessage, PoolSeed};
use super::{Leases, PoolState, PoolStatus};
use crate::admission::Admission;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent, rpc::CallResult};
use std::{collections::VecDeque, sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};
use toolyard_core::ToolClass;

/// A pool that dies more often than this ...
const RESTARTS_MAX: usize = 3;
/// ... within this time is given up, and its engine with it (RA-5).
const RESTART_WINDOW: Duration = Duration::from_secs(60);
/// How long an operator's word to a pool may take, a restart included.
const CALL_WITHIN: Duration = Duration::from_secs(5);

/// Why a pool did not do what it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// The serial lease has width 1 (CL-6), and no pool has width 0.
    #[error("a {class} pool cannot have width {width}")]
    Width {
        /// The pool.
        class: ToolClass,
        /// The width asked for.
        width: usize,
    },
    /// The pool's actor has stopped or did not answer in time.
    #[error("the {class} pool did not answer; the engine is stopping or has failed")]
    Away {
        /// The pool.
        class: ToolClass,
    },
}

enum SupervisorMessage {
    /// The actor of a class, as it is now.
    Find(ToolClass, RpcReplyPort<ActorRef<PoolMessage>>),
    /// The pools are about to be stopped: no death is a fault from now on.
    Stopping(RpcReplyPort<()>),
}

struct Supervisor;

struct Charge {
    seed: PoolSeed,
    actor: ActorRef<PoolMessage>,
    died_at: VecDeque<Instant>,
}

impl Charge {
    /// Whether one more death is one too many.
    fn is_beyond_repair(&mut self, now: Instant) -> bool {
        self.died_at.push_back(now);
        while self.died_at.front().is_some_and(|at| now.duration_since(*at) > RESTART_WINDOW) {
            self.died_at.pop_front();
        }
        self.died_at.len() > RESTARTS_MAX
    }
}

/// What the supervisor is made from.
struct Charter {
    admission: Arc<Admission>,
    leases: Arc<Leases>,
    /// Called once, when a pool is given up.
    on_failure: Box<dyn FnOnce() + Send>,
}

struct Supervised {
    charges: Vec<Charge>,
    leases: Arc<Leases>,
    on_failure: Option<Box<dyn FnOnce() + Send>>,
    is_stopping: bool,
}

impl Supervised {
    fn charge(&mut self, class: ToolClass) -> &mut Charge {
        &mut self.charges[class.index()]
    }

    fn class_of(&self, actor: &ractor::ActorCell) -> Option<ToolClass> {
        let of = |charge: &&Charge| charge.actor.get_id() == actor.get_id();
        self.charges.iter().find(of).map(|charge| charge.seed.class)
    }

    /// Starts a dead pool again, or gives it up.
    async fn restart(
        &mut self,
        class: ToolClass,
        me: ActorRef<SupervisorMessage>,
    ) -> Result<(), ActorProcessingErr> {
        let mut lease = self.leases.get(class);
        let charge = self.charge(class);
        if charge.is_beyond_repair(Instant::now()) {
            tracing::error!(%class, "a pool died too often; the engine gives up");
            lease.state = PoolState::Failed;
            self.leases.publish(class, lease);
            if let Some(fail) = self.on_failure.take() {
                fail();
            }
            return Ok(());
        }
        lease.restarts += 1;
        let seed = charge.seed.clone();
        self.leases.publish(class, lease);
        self.charge(class).actor = spawn_pool(seed, &me).await?;
        Ok(())
    }
}

async fn spawn_pool(
    seed: PoolSeed,
    me: &ActorRef<SupervisorMessage>,
) -> Result<ActorRef<PoolMessage>, ActorProcessingErr> {
    // No name: names are global to the process (RA-1), and a process may hold many engines.
    let (actor, _) = Actor::spawn_linked(None, PoolActor, seed, me.get_cell()).await?;
    Ok(actor)
}

impl Actor for Supervisor {
    type Msg = SupervisorMessage;
    type State = Supervised;
    type Arguments = Charter;

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMessage>,
        charter: Charter,
    ) -> Result<Supervised, ActorProcessingErr> {
        let mut charges = Vec::with_capacity(ToolClass::ALL.len());
        for class in ToolClass::ALL {
            let (admission, leases) = (charter.admission.clone(), charter.leases.clone());
            let seed = PoolSeed { class, admission, leases };
            let actor = spawn_pool(seed.clone(), &me).await?;
            charges.push(Charge { seed, actor, died_at: VecDeque::new() });
        }
        Ok(Supervised {
            charges,
            leases: charter.leases,
            on_failure: Some(charter.on_failure),
            is_stopping: false,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<SupervisorMessage>,
        message: SupervisorMessage,
        state: &mut Supervised,
    ) -> Result<(), ActorProcessingErr> {
        // Nobody may wait for the answer any more: then it is dropped.
        match message {
            // Without an answer, who asks learns at once that the pool is away.
            SupervisorMessage::Find(..) if state.is_stopping => {}
            SupervisorMessage::Find(class, reply) => {
                let _ = reply.send(state.charge(class).actor.clone());
            }
            SupervisorMessage::Stopping(reply) => {
                state.is_stopping = true;
                let _ = reply.send(());
            }
        }
        Ok(())
    }

    // ractor's default stops the supervisor when a child fails, and the whole subtree with it.
    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        state: &mut Supervised,
    ) -> Result<(), ActorProcessingErr> {
        let (SupervisionEvent::ActorFailed(actor, _) | SupervisionEvent::ActorTerminated(actor, _, _)) =
            event
        else {
            return Ok(());
        };
        match state.class_of(&actor) {
            Some(class) if !state.is_stopping => state.restart(class, me).await,
            Some(_) | None => Ok(()),
        }
    }
}

/// The engine's handle to its pools.
pub(crate) struct Pools {
    supervisor: ActorRef<SupervisorMessage>,
    stopped: std::sync::Mutex<Option<JoinHandle<()>>>,
    leases: Arc<Leases>,
}

impl Pools {
    /// Starts the supervisor and one pool actor per class. `on_failure` is called when a pool is given up.
    pub(crate) async fn start(
        admission: Arc<Admission>,
        leases: Arc<Leases>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Result<Self, ractor::SpawnErr> {
        let charter = Charter { admission, leases: leases.clone(), on_failure: Box::new(on_failure) };
        let (supervisor, stopped) = Actor::spawn(None, Supervisor, charter).await?;
        Ok(Self { supervisor, stopped: std::sync::Mutex::new(Some(stopped)), leases })
    }

    /// Asks the pool of a class; a restart in between is waited for.
    async fn ask<R: Send + 'static>(
        &self,
        class: ToolClass,
        message: impl Fn(RpcReplyPort<R>) -> PoolMessage,
    ) -> Result<R, PoolError> {
        let give_up_at = Instant::now() + CALL_WITHIN;
        while self.leases.get(class).state != PoolState::Failed && Instant::now() < give_up_at {
            let find = |reply| SupervisorMessage::Find(class, reply);
            let Ok(CallResult::Success(pool)) = self.supervisor.call(find, Some(CALL_WITHIN)).await else {
                break;
            };
            if let Ok(CallResult::Success(answer)) = pool.call(&message, Some(CALL_WITHIN)).await {
                return Ok(answer);
            }
            tokio::task::yield_now().await; // the supervisor has yet to hear of the death
        }
        Err(PoolError::Away { class })
    }

    /// Sets the width of a class; answers the one before.
    pub(crate) async fn resize(&self, class: ToolClass, width: usize) -> Result<usize, PoolError> {
        if width == 0 || class == ToolClass::Serial {
            return Err(PoolError::Width { class, width });
        }
        self.ask(class, |reply| PoolMessage::Resize(width, reply)).await
    }

    /// Stops or resumes granting of a class.
    pub(crate) async fn pause(&self, class: ToolClass, paused: bool) -> Result<(), PoolError> {
        self.ask(class, |reply| PoolMessage::Pause(paused, reply)).await
    }

    /// Refuses new calls of every class.
    pub(crate) async fn drain(&self) {
        for class in ToolClass::ALL {
            // A pool that is away admits nothing either.
            let _ = self.ask(class, PoolMessage::Drain).await;
        }
    }

    /// How every pool stands.
    pub(crate) async fn status(&self) -> Result<Vec<PoolStatus>, PoolError> {
        let mut pools = Vec::with_capacity(ToolClass::ALL.len());
        for class in ToolClass::ALL {
            pools.push(self.ask(class, PoolMessage::Status).await?);
        }
        Ok(pools)
    }

    /// Stops the actors, children first, and waits until they have.
    pub(crate) async fn stop(&self) {
        let stopped = self.stopped.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(stopped) = stopped {
            let _ = self.supervisor.call(SupervisorMessage::Stopping, Some(CALL_WITHIN)).await;
            self.supervisor.stop_children_and_wait(None, Some(CALL_WITHIN)).await;
            self.supervisor.stop(None);
            let _ = stopped.await;
        }
    }

    /// Kills the actor of a class as a bug would.
    #[cfg(test)]
    pub(crate) async fn kill(&self, class: ToolClass) {
        let find = |reply| SupervisorMessage::Find(class, reply);
        if let Ok(CallResult::Success(pool)) = self.supervisor.call(find, Some(CALL_WITHIN)).await {
            let _ = pool.cast(PoolMessage::Panic);
        }
    }
}

impl Drop for Pools {
    fn drop(&mut self) {
        self.supervisor.stop(None);
    }
}
