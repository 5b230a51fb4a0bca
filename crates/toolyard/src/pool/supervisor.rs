//! The actor above the pools, which restarts them when they die.

use super::actor::{PoolActor, PoolMessage, PoolSeed};
use super::deaths::Deaths;
use super::{PoolLeases, PoolState};
use parking_lot::Mutex;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort, SupervisionEvent};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::time::Instant;
use toolyard_admission::Admission;
use toolyard_core::ToolClass;

pub(super) enum SupervisorMessage {
    /// Find the current actor of a class.
    Find(ToolClass, RpcReplyPort<ActorRef<PoolMessage>>),
    /// Kill one of the actors, as a bug would.
    #[cfg(test)]
    Kill(super::Victim),
}

pub(super) struct Supervisor;

struct SupervisedPool {
    seed: PoolSeed,
    actor: ActorRef<PoolMessage>,
    deaths: Deaths,
}

/// What the supervisor is made from. All of it outlives the actor.
pub(super) struct SupervisorSetup {
    pub(super) admission: Arc<Admission>,
    pub(super) leases: Arc<PoolLeases>,
    /// Whether the pools are being stopped. From then on, no death is a fault.
    pub(super) is_stopping: AtomicBool,
    /// Called once, when the first pool is given up.
    on_failure: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl SupervisorSetup {
    pub(super) fn new(
        admission: Arc<Admission>,
        leases: Arc<PoolLeases>,
        on_failure: impl FnOnce() + Send + 'static,
    ) -> Arc<Self> {
        let on_failure: Box<dyn FnOnce() + Send> = Box::new(on_failure);
        let (is_stopping, on_failure) = (AtomicBool::new(false), Mutex::new(Some(on_failure)));
        Arc::new(Self { admission, leases, is_stopping, on_failure })
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Gives up the pool of a class, and with it the engine.
    pub(super) fn give_up(&self, class: ToolClass) {
        tracing::error!(%class, "a pool was restarted too often; the engine has failed");
        self.leases.change(class, |lease| lease.state = PoolState::Failed);
        let on_failure = self.on_failure.lock().take();
        if let Some(fail) = on_failure {
            fail();
        }
    }
}

pub(super) struct Supervised {
    pools: Vec<SupervisedPool>,
    setup: Arc<SupervisorSetup>,
}

impl Supervised {
    fn pool(&mut self, class: ToolClass) -> &mut SupervisedPool {
        &mut self.pools[class.index()]
    }

    fn class_of(&self, actor: &ractor::ActorCell) -> Option<ToolClass> {
        let of = |pool: &&SupervisedPool| pool.actor.get_id() == actor.get_id();
        self.pools.iter().find(of).map(|pool| pool.seed.class)
    }

    /// Restarts a dead pool, or gives it up.
    async fn restart(
        &mut self,
        class: ToolClass,
        me: ActorRef<SupervisorMessage>,
    ) -> Result<(), ActorProcessingErr> {
        if self.pool(class).deaths.exceeds_limit(Instant::now()) {
            self.setup.give_up(class);
            return Ok(());
        }
        self.setup.leases.change(class, |lease| lease.restarts += 1);
        let seed = self.pool(class).seed.clone();
        self.pool(class).actor = spawn_pool(seed, &me).await?;
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
    type Arguments = Arc<SupervisorSetup>;

    async fn pre_start(
        &self,
        me: ActorRef<SupervisorMessage>,
        setup: Arc<SupervisorSetup>,
    ) -> Result<Supervised, ActorProcessingErr> {
        let mut pools = Vec::with_capacity(ToolClass::ALL.len());
        for class in ToolClass::ALL {
            let (admission, leases) = (setup.admission.clone(), setup.leases.clone());
            let seed = PoolSeed { class, admission, leases };
            let actor = spawn_pool(seed.clone(), &me).await?;
            pools.push(SupervisedPool { seed, actor, deaths: Deaths::default() });
        }
        Ok(Supervised { pools, setup })
    }

    async fn handle(
        &self,
        _: ActorRef<SupervisorMessage>,
        message: SupervisorMessage,
        state: &mut Supervised,
    ) -> Result<(), ActorProcessingErr> {
        // If the caller no longer waits for the reply, it is dropped.
        match message {
            // Dropping the reply tells the caller at once that the pool is away.
            SupervisorMessage::Find(..) if state.setup.is_stopping() => {}
            SupervisorMessage::Find(class, reply) => {
                let _ = reply.send(state.pool(class).actor.clone());
            }
            #[cfg(test)]
            SupervisorMessage::Kill(super::Victim::Supervisor) => panic!("killed by a test"),
            #[cfg(test)]
            SupervisorMessage::Kill(super::Victim::Pool(class)) => {
                let _ = state.pool(class).actor.cast(PoolMessage::Panic);
            }
        }
        Ok(())
    }

    // ractor's default stops the supervisor and its whole subtree when a child fails.
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
            Some(class) if !state.setup.is_stopping() => state.restart(class, me).await,
            Some(_) | None => Ok(()),
        }
    }
}
