//! The connected clients.

use super::{pending::PendingCalls, redact::MaybeRedactor};
use parking_lot::Mutex;
use rmcp::{
    RoleServer,
    model::LoggingLevel,
    service::{ElicitationMode, Peer},
};
use std::{collections::HashMap, sync::Arc};
use toolyard::{AgentPath, Event, EventKind, EventSink, SessionId};

/// The connected clients, by session. Cheap to clone; clones share their state.
///
/// It is created before the engine and given to it three times: as the [`Approver`](toolyard::Approver), to ask a
/// client about its own calls; as an [`EventSink`], to report their progress; and as a resource, through which MCP
/// servers that [may ask](crate::ServerConfig::may_ask) reach the client of a call.
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
    pub(super) pending: PendingCalls,
}

/// A client and the capabilities it declared.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) peer: Peer<RoleServer>,
    /// Its name, under which its user's answers are recorded.
    pub(super) name: Arc<str>,
    /// Whether it can ask its user.
    pub(super) elicits: bool,
    /// Whether it is asked about its own calls.
    pub(super) asks: bool,
    /// Whether it lets servers use its model.
    pub(super) samples: bool,
    /// The lowest level of server logs that it wants.
    pub(super) level: LoggingLevel,
    /// Redacts what servers say to it.
    pub(super) redactor: MaybeRedactor,
}

impl Client {
    /// Reads the capabilities that the client declared when it connected.
    pub(super) fn of(peer: Peer<RoleServer>, asks: bool, redactor: MaybeRedactor) -> Self {
        let elicits = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
        let samples = peer.peer_info().is_some_and(|info| info.capabilities.sampling.is_some());
        let name = peer.peer_info().map(|info| info.client_info.name.as_str().into());
        let name = name.unwrap_or_else(|| "MCP client".into());
        Self { peer, name, elicits, asks, samples, level: LoggingLevel::Info, redactor }
    }
}

impl Clients {
    pub(super) fn insert(&self, session: SessionId, client: Client) {
        self.connected.lock().insert(session, client);
    }

    pub(super) fn remove(&self, session: &SessionId) {
        self.connected.lock().remove(session);
    }

    /// The client of this session, if any.
    pub(super) fn of(&self, session: &SessionId) -> Option<Client> {
        self.connected.lock().get(session).cloned()
    }

    /// Whether this session is that of a connected client that is asked about its own calls. An approver that also asks
    /// elsewhere asks by this whom.
    pub fn asks(&self, session: &SessionId) -> bool {
        self.connected.lock().get(session).is_some_and(|client| client.asks)
    }

    /// Sets the lowest level of server logs that this session's client wants.
    pub(super) fn set_level(&self, session: &SessionId, level: LoggingLevel) {
        if let Some(client) = self.connected.lock().get_mut(session) {
            client.level = level;
        }
    }
}

impl EventSink for Clients {
    fn accept(&self, event: &Event) {
        // Only of the root agent's calls, which the client made: sub-agents may use the same call ids.
        let EventKind::OutputDelta { text } = &event.kind else { return };
        if let (Some(call), true) = (&event.call_id, event.agent == AgentPath::root()) {
            self.pending.add_text(&event.session, call, text);
        }
    }
}
