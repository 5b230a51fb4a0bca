//! The actor that owns one class's pool.

use super::{PoolLease, PoolLeases, PoolState, PoolStatus};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use std::sync::{Arc, OnceLock};
use toolyard_admission::Admission;
use toolyard_core::ToolClass;

/// A message to a pool. None of these is sent on the path of a call.
#[derive(Debug)]
pub(super) enum PoolMessage {
    /// Set another width; replies with the previous one.
    Resize(usize, Applied<usize>, RpcReplyPort<usize>),
    /// Pause granting, or resume it.
    Pause(bool, Applied<()>, RpcReplyPort<()>),
    /// Grant the next few calls that a change of the pool has unblocked.
    Grant,
    /// Refuse new calls from now on.
    Drain(RpcReplyPort<()>),
    /// Report the pool's status.
    Status(RpcReplyPort<PoolStatus>),
    /// Panic, as a bug would.
    #[cfg(test)]
    Panic,
}

/// What a change replied, set once it is in force. So a change that is sent again because its reply was lost is made
/// once, and its sender learns what happened even if no reply comes.
pub(super) type Applied<T> = Arc<OnceLock<T>>;

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

    /// Sets the width and returns the previous one. The calls that this unblocks are yet to be granted.
    fn resize(&mut self, width: usize) -> usize {
        let before = self.lease.width;
        self.publish(|lease| lease.width = width);
        self.seed.admission.resize_class(self.seed.class, width);
        before
    }

    /// Pauses the pool or resumes it, unless it is stopping.
    fn pause(&mut self, paused: bool) {
        if matches!(self.lease.state, PoolState::Running | PoolState::Paused) {
            let state = if paused { PoolState::Paused } else { PoolState::Running };
            self.publish(|lease| lease.state = state);
            self.seed.admission.pause_class(self.seed.class, paused);
        }
    }

    /// Grants one slice of what a change has unblocked. The rest follows with later messages, so that the pool answers
    /// others in between.
    fn grant(&self, me: &ActorRef<PoolMessage>) -> Result<(), ActorProcessingErr> {
        if self.seed.admission.grant_slice() {
            me.cast(PoolMessage::Grant)?;
        }
        Ok(())
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

    async fn pre_start(
        &self,
        me: ActorRef<PoolMessage>,
        seed: PoolSeed,
    ) -> Result<Owned, ActorProcessingErr> {
        me.cast(PoolMessage::Grant)?; // what its predecessor may have left
        let lease = seed.leases.get(seed.class);
        Ok(Owned { seed, lease })
    }

    async fn handle(
        &self,
        me: ActorRef<PoolMessage>,
        message: PoolMessage,
        pool: &mut Owned,
    ) -> Result<(), ActorProcessingErr> {
        // If the caller no longer waits for the reply, it is dropped.
        match message {
            PoolMessage::Resize(width, applied, reply) => {
                let before = *applied.get_or_init(|| pool.resize(width));
                pool.grant(&me)?;
                let _ = reply.send(before);
            }
            PoolMessage::Pause(paused, applied, reply) => {
                applied.get_or_init(|| pool.pause(paused));
                pool.grant(&me)?;
                let _ = reply.send(());
            }
            PoolMessage::Grant => pool.grant(&me)?,
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
