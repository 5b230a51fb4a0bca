//! The actor above all agents.

use super::{
    AgentHandle, AgentStatus, Shared, StartError,
    agent::{AgentActor, AgentMessage, AgentSeed},
};
use crate::profile::Profile;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, RpcReplyPort, SpawnErr, SupervisionEvent};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::watch;
use toolyard::Session;

/// An agent that is to be started.
pub(super) struct StartAgent {
    pub(super) session: Session,
    pub(super) name: String,
    pub(super) profile: Profile,
    pub(super) input: Option<Arc<Value>>,
}

pub(super) enum SupervisorMessage {
    /// Start an agent.
    Start(Box<StartAgent>, RpcReplyPort<Result<AgentHandle, StartError>>),
    /// Say what each agent does.
    Status(RpcReplyPort<Vec<AgentStatus>>),
    /// Tell all to end within this time; replies when none is left.
    Stop(Duration, RpcReplyPort<()>),
}

pub(super) struct SupervisorActor;

/// The agents that have not ended, in the order of their starts.
pub(super) struct Supervised {
    shared: Weak<Shared>,
    agents: BTreeMap<u64, ActorRef<AgentMessage>>,
    started: u64,
    /// Who waits for the last one to end. No agent is started any more.
    stopping: Option<Vec<RpcReplyPort<()>>>,
}

impl Supervised {
    async fn start(
        &mut self,
        me: &ActorRef<SupervisorMessage>,
        order: StartAgent,
    ) -> Result<AgentHandle, StartError> {
        let shared = self.shared.upgrade().filter(|_| self.stopping.is_none()).ok_or(StartError::Stopped)?;
        let most = shared.options.agents_max;
        if self.agents.len() >= most {
            return Err(StartError::TooMany(most));
        }
        let agent = order.session.agent().clone();
        let (tell, ended) = watch::channel(None);
        let seed = AgentSeed { shared, order, tell };
        let spawned = Actor::spawn_linked(None, AgentActor, Box::new(seed), me.get_cell()).await;
        let (actor, _) = spawned.map_err(|error| match error {
            SpawnErr::StartupFailed(why) => StartError::Program(why.to_string()),
            other => StartError::Program(other.to_string()),
        })?;
        self.started += 1;
        self.agents.insert(self.started, actor.clone());
        Ok(AgentHandle::new(agent, actor, ended))
    }

    async fn status(&self) -> Vec<AgentStatus> {
        let mut all = Vec::with_capacity(self.agents.len());
        for agent in self.agents.values() {
            if let Ok(ractor::rpc::CallResult::Success(status)) = agent.call(AgentMessage::Status, None).await
            {
                all.push(status);
            }
        }
        all
    }

    /// An agent's actor has ended.
    fn ended(&mut self, id: ActorId) {
        self.agents.retain(|_, agent| agent.get_id() != id);
        self.reply_if_empty();
    }

    fn reply_if_empty(&mut self) {
        if self.agents.is_empty()
            && let Some(waiting) = &mut self.stopping
        {
            waiting.drain(..).for_each(|reply| drop(reply.send(())));
        }
    }
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMessage;
    type State = Supervised;
    type Arguments = Weak<Shared>;

    async fn pre_start(
        &self,
        _: ActorRef<SupervisorMessage>,
        shared: Weak<Shared>,
    ) -> Result<Supervised, ActorProcessingErr> {
        Ok(Supervised { shared, agents: BTreeMap::new(), started: 0, stopping: None })
    }

    async fn handle(
        &self,
        me: ActorRef<SupervisorMessage>,
        message: SupervisorMessage,
        supervised: &mut Supervised,
    ) -> Result<(), ActorProcessingErr> {
        // If the caller no longer waits for the reply, it is dropped, and an agent with it.
        match message {
            SupervisorMessage::Start(order, reply) => {
                let started = supervised.start(&me, *order).await;
                let _ = reply.send(started);
            }
            SupervisorMessage::Status(reply) => {
                let _ = reply.send(supervised.status().await);
            }
            SupervisorMessage::Stop(grace, reply) => {
                supervised.stopping.get_or_insert_default().push(reply);
                supervised.agents.values().for_each(|agent| drop(agent.cast(AgentMessage::Stop(grace))));
                supervised.reply_if_empty();
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        supervised: &mut Supervised,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorTerminated(actor, ..) => supervised.ended(actor.get_id()),
            SupervisionEvent::ActorFailed(actor, why) => {
                tracing::error!(%why, "the actor of an agent has failed; its program is ended");
                supervised.ended(actor.get_id());
            }
            _ => {}
        }
        Ok(())
    }
}
