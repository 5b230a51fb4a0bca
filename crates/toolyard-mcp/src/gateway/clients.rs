//! The clients that are connected.

use super::{shown::Shown, waited::Waited};
use rmcp::{
    RoleServer,
    model::LoggingLevel,
    service::{ElicitationMode, Peer},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolyard::{AgentPath, Event, EventKind, EventSink, SessionId};

/// The clients that are connected, by the session each has. Cheap to clone; clones are the same.
///
/// It is made before the engine, which is given it as the [`Approver`](toolyard::Approver), to ask a client about its own
/// calls; as an [`EventSink`], to tell it of their progress; and as a resource, through which MCP servers that
/// [may ask](crate::ServerConfig::may_ask) reach the client of a call.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::Engine;
/// use toolyard_mcp::{Clients, Gateway};
/// let clients = Clients::default();
/// let engine = Engine::builder().approver(clients.clone()).events(clients.clone()).resource(clients.clone());
/// let gateway = Gateway::new(engine.build().await.unwrap(), clients);
/// # let _ = gateway;
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Clients {
    connected: Arc<Mutex<HashMap<SessionId, Client>>>,
    pub(super) waited: Waited,
}

/// A client, and what it has declared.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) peer: Peer<RoleServer>,
    /// Whether it can ask its user.
    pub(super) elicits: bool,
    /// Whether it lets others use its model.
    pub(super) samples: bool,
    /// From which on it wants to be told what servers log.
    pub(super) level: LoggingLevel,
    /// What it is shown of what servers say.
    pub(super) shown: Shown,
}

impl Client {
    /// By what it declared when it connected.
    pub(super) fn of(peer: Peer<RoleServer>, shown: Shown) -> Self {
        let elicits = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
        let samples = peer.peer_info().is_some_and(|info| info.capabilities.sampling.is_some());
        Self { peer, elicits, samples, level: LoggingLevel::Info, shown }
    }
}

impl Clients {
    fn connected(&self) -> MutexGuard<'_, HashMap<SessionId, Client>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, session: SessionId, client: Client) {
        self.connected().insert(session, client);
    }

    pub(super) fn leave(&self, session: &SessionId) {
        self.connected().remove(session);
    }

    /// The client of this session, if one has it.
    pub(super) fn of(&self, session: &SessionId) -> Option<Client> {
        self.connected().get(session).cloned()
    }

    /// Notes from which level on this session's client wants to be told.
    pub(super) fn set_level(&self, session: &SessionId, level: LoggingLevel) {
        if let Some(client) = self.connected().get_mut(session) {
            client.level = level;
        }
    }
}

impl EventSink for Clients {
    fn accept(&self, event: &Event) {
        // Of a call that a client made, and not of those that its handler makes.
        let EventKind::OutputDelta { text } = &event.kind else { return };
        if let (Some(call), true) = (&event.call_id, event.agent == AgentPath::root()) {
            self.waited.add_text(&event.session, call, text);
        }
    }
}
