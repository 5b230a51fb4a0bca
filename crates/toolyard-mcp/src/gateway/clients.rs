//! The clients that are connected.

use super::outputs::Outputs;
use rmcp::{
    RoleServer,
    service::{ElicitationMode, Peer},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use toolyard::{AgentPath, Event, EventKind, EventSink, SessionId};

/// The clients that are connected, by the session each has. Cheap to clone; clones are the same.
///
/// It is made before the engine, which is given it twice: as the [`Approver`](toolyard::Approver), to ask a client about
/// its own calls, and as an [`EventSink`], to tell it of their progress.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::Engine;
/// use toolyard_mcp::{Clients, Gateway};
/// let clients = Clients::default();
/// let engine = Engine::builder().approver(clients.clone()).events(clients.clone()).build().await.unwrap();
/// let gateway = Gateway::new(engine, clients);
/// # let _ = gateway;
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Clients {
    connected: Arc<Mutex<HashMap<SessionId, Asked>>>,
    pub(super) outputs: Outputs,
}

/// How a client is asked.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) peer: Peer<RoleServer>,
    /// Whether it can be.
    pub(super) can: bool,
}

impl Asked {
    /// By what it declared when it connected.
    pub(super) fn of(peer: Peer<RoleServer>) -> Self {
        let can = peer.supported_elicitation_modes().contains(&ElicitationMode::Form);
        Self { peer, can }
    }
}

impl Clients {
    fn connected(&self) -> MutexGuard<'_, HashMap<SessionId, Asked>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(&self, session: SessionId, asked: Asked) {
        self.connected().insert(session, asked);
    }

    pub(super) fn leave(&self, session: &SessionId) {
        self.connected().remove(session);
    }

    /// How the client of this session is asked, if one has it.
    pub(super) fn asked(&self, session: &SessionId) -> Option<Asked> {
        self.connected().get(session).cloned()
    }
}

impl EventSink for Clients {
    fn accept(&self, event: &Event) {
        // Of a call that a client made, and not of those that its handler makes.
        let EventKind::OutputDelta { text } = &event.kind else { return };
        if let (Some(call), true) = (&event.call_id, event.agent == AgentPath::root()) {
            self.outputs.add(&event.session, call, text);
        }
    }
}
