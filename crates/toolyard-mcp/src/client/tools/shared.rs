//! The current state of a server: written by its supervisor, read by calls.

use super::{connection::Connection, definition::Definitions};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::{sync::Notify, time::Instant};
use toolyard::ToolError;

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// It is being started.
    Starting,
    /// It takes calls.
    Ready,
    /// It died and will be restarted.
    Down {
        /// Why it died.
        why: String,
    },
    /// It died too often, could not be started on request, or was stopped.
    GivenUp {
        /// The last reason why it ended or could not be started.
        why: String,
    },
}

/// The current state of one server, shared by its supervisor and calls.
pub(crate) struct Shared {
    name: String,
    current: Mutex<Current>,
    changed: Notify,
}

struct Current {
    state: ServerState,
    restart_at: Option<Instant>,
    connection: Option<Arc<Connection>>,
    definitions: Definitions,
}

impl Shared {
    pub(crate) fn new(name: &str) -> Self {
        let current = Current {
            state: ServerState::Starting,
            restart_at: None,
            connection: None,
            definitions: Definitions::default(),
        };
        Self { name: name.to_owned(), current: Mutex::new(current), changed: Notify::new() }
    }

    pub(crate) fn state(&self) -> ServerState {
        self.current.lock().state.clone()
    }

    pub(crate) fn definitions(&self) -> Definitions {
        self.current.lock().definitions.clone()
    }

    pub(crate) fn define(&self, definitions: Definitions) {
        self.current.lock().definitions = definitions;
    }

    /// Records that it takes calls.
    pub(crate) fn ready(&self, connection: Arc<Connection>) {
        let mut current = self.current.lock();
        current.state = ServerState::Ready;
        current.connection = Some(connection);
        self.changed.notify_waiters();
    }

    /// Waits until it takes calls or has been given up.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            let is_ready = match self.state() {
                ServerState::Ready => self.connection().is_ok(),
                state => matches!(state, ServerState::GivenUp { .. }),
            };
            if is_ready {
                return;
            }
            changed.await;
        }
    }

    /// Records that it takes no calls, and when it is restarted, if it is.
    pub(crate) fn down(&self, state: ServerState, restart_at: Option<Instant>) {
        let mut current = self.current.lock();
        current.state = state;
        current.restart_at = restart_at;
        current.connection = None;
        self.changed.notify_waiters();
    }

    /// The connection for a call. If there is none, nothing was sent, so there was no side effect.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>, ToolError> {
        let current = self.current.lock();
        if let Some(connection) = current.connection.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let why = match &current.state {
            ServerState::Starting | ServerState::Ready => "it is being started".to_owned(),
            ServerState::Down { why } => format!("it is being restarted: {why}"),
            ServerState::GivenUp { why } => format!("it was given up: {why}"),
        };
        let error = ToolError::transient(format!("the server '{}' is not available: {why}", self.name));
        let error = error.no_side_effect();
        Err(match current.restart_at {
            Some(at) => error.retry_after(at.saturating_duration_since(Instant::now())),
            None => error,
        })
    }
}
