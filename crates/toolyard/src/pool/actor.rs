//! The actor that owns one class's pool.

use super::{PoolLease, PoolLeases, PoolState, PoolStatus};
use crate::admission::Admission;
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use std::sync::Arc;
use toolyard_core::ToolClass;

/// A message to a pool. None of these is sent on the path of a call.
#[derive(Debug)]
pub(super) enum PoolMessage {
    /// Set another width; replies with the previous one.
    Resize(usize, RpcReplyPort<usize>),
    /// Pause granting, or resume it.
    Pause(bool, RpcReplyPort<()>),
    /// Refuse new calls from now on.
    Drain(RpcReplyPort<()>),
    /// Report the pool's status.
    Status(RpcReplyPort<PoolStatus>),
    /// Panic, as a bug would.
    #[cfg(test)]
    Panic,
}

/// What a pool actor is made from. All of it outlives the actor.
#[derive(Debug, Clone)]
pub(super) struct PoolSeed {
    pub(super) class: ToolClass,
    pub(super) admission: Arc<Admission>,
    pub(super) leases: Arc<PoolLeases>,
}

pub(super) struct PoolActor;

/// The actor's state: its seed, and the lease it published last, which a restarted actor continues from.
pub(super) struct Owned {
    seed: PoolSeed,
    lease: PoolLease,
}

impl Owned {
    fn publish(&mut self, change: impl FnOnce(&mut PoolLease)) {
        change(&mut self.lease);
        self.seed.leases.publish(self.seed.class, self.lease);
    }

    fn status(&self) -> PoolStatus {
        let (class, lease) = (self.seed.class, self.lease);
        let load = self.seed.admission.load(class);
        PoolStatus {
            class,
            state: lease.state,
            width: lease.width,
            running: load.running,
            queued: load.queued,
            restarts: lease.restarts,
        }
    }
}

impl Actor for PoolActor {
    type Msg = PoolMessage;
    type State = Owned;
    type Arguments = PoolSeed;

    async fn pre_start(&self, _: ActorRef<PoolMessage>, seed: PoolSeed) -> Result<Owned, ActorProcessingErr> {
        let lease = seed.leases.get(seed.class);
        Ok(Owned { seed, lease })
    }

    async fn handle(
        &self,
        _: ActorRef<PoolMessage>,
        message: PoolMessage,
        pool: &mut Owned,
    ) -> Result<(), ActorProcessingErr> {
        let class = pool.seed.class;
        // If the caller no longer waits for the reply, it is dropped.
        match message {
            PoolMessage::Resize(width, reply) => {
                let before = pool.lease.width;
                pool.publish(|lease| lease.width = width);
                pool.seed.admission.resize_class(class, width);
                let _ = reply.send(before);
            }
            PoolMessage::Pause(paused, reply) => {
                if matches!(pool.lease.state, PoolState::Running | PoolState::Paused) {
                    let state = if paused { PoolState::Paused } else { PoolState::Running };
                    pool.publish(|lease| lease.state = state);
                    pool.seed.admission.pause_class(class, paused);
                }
                let _ = reply.send(());
            }
            PoolMessage::Drain(reply) => {
                pool.publish(|lease| lease.state = PoolState::Draining);
                let _ = reply.send(());
            }
            PoolMessage::Status(reply) => {
                let _ = reply.send(pool.status());
            }
            #[cfg(test)]
            PoolMessage::Panic => panic!("killed by a test"),
        }
        Ok(())
    }
}
