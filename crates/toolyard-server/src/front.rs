//! What an engine is built with so that a server can show its events and ask its questions.

use crate::{events::History, parent::Deltas, questions::Questions};
use async_trait::async_trait;
use std::sync::{Arc, OnceLock};
use toolyard::{Answer, ApprovalRequest, Approver, Event, EventSink, Receipt};
use toolyard_mcp::Clients;

/// The side of a [`Server`](crate::Server) that its engine knows: it takes the events, and puts questions where they can
/// be answered over HTTP. Cheap to clone; all clones are the same. It serves one engine.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::Engine;
/// use toolyard_server::{Front, Server, ServerOptions};
/// let front = Front::default();
/// let engine = Engine::builder().approver(front.clone()).events(front.clone()).build().await.unwrap();
/// let server = Server::new(engine, front, ServerOptions::default()).unwrap();
/// # let _ = server;
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Front {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    history: History,
    questions: Questions,
    /// The clients of `/mcp`.
    clients: Clients,
    /// Where the parent program is told of output, if there is one.
    deltas: OnceLock<Deltas>,
}

impl Front {
    pub(crate) fn history(&self) -> &History {
        &self.shared.history
    }

    /// The clients of `/mcp`: give them to the engine as a [resource](toolyard::EngineBuilder::resource) too, if its MCP
    /// servers may ask them.
    pub fn clients(&self) -> &Clients {
        &self.shared.clients
    }

    /// Passes on output to the parent program from now on; `false` if there is one already.
    pub(crate) fn tell_parent(&self, deltas: Deltas) -> bool {
        self.shared.deltas.set(deltas).is_ok()
    }

    pub(crate) fn deltas(&self) -> Option<&Deltas> {
        self.shared.deltas.get()
    }

    pub(crate) fn questions(&self) -> &Questions {
        &self.shared.questions
    }
}

impl EventSink for Front {
    fn accept(&self, event: &Event) {
        self.shared.questions.accept(event);
        self.shared.history.add(event);
        self.shared.clients.accept(event);
        if let Some(deltas) = self.shared.deltas.get() {
            deltas.accept(event);
        }
    }
}

#[async_trait]
impl Approver for Front {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        // A client whose token may approve asks its own user (HT-6); all others find their questions here.
        match self.shared.clients.asks(request.session()) {
            true => {
                self.shared.questions.is_elsewhere(request.id());
                self.shared.clients.ask(request).await
            }
            false => self.shared.questions.ask(request).await,
        }
    }

    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        self.shared.questions.receipt(request, receipt);
    }

    fn no_more_questions(&self) {
        self.shared.questions.no_more();
    }
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}
