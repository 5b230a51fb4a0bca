//! The current state of a server: written by its supervisor, read by calls.

use super::{connection::Connection, definition::Definitions};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::{sync::Notify, time::Instant};
use toolyard::ToolError;

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
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
pub(super) struct Shared {
    name: String,
    now: Mutex<Now>,
    moved: Notify,
}

struct Now {
    state: State,
    restart_at: Option<Instant>,
    connection: Option<Arc<Connection>>,
    definitions: Definitions,
}

impl Shared {
    pub(super) fn new(name: &str) -> Self {
        let now = Now {
            state: State::Starting,
            restart_at: None,
            connection: None,
            definitions: Definitions::default(),
        };
        Self { name: name.to_owned(), now: Mutex::new(now), moved: Notify::new() }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> State {
        self.now().state.clone()
    }

    pub(super) fn definitions(&self) -> Definitions {
        self.now().definitions.clone()
    }

    pub(super) fn define(&self, definitions: Definitions) {
        self.now().definitions = definitions;
    }

    /// Records that it takes calls.
    pub(super) fn ready(&self, connection: Arc<Connection>) {
        let mut now = self.now();
        now.state = State::Ready;
        now.connection = Some(connection);
        self.moved.notify_waiters();
    }

    /// Waits until it takes calls or has been given up.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn settled(&self) {
        loop {
            let moved = self.moved.notified();
            let is_ready = match self.state() {
                State::Ready => self.connection().is_ok(),
                state => matches!(state, State::GivenUp { .. }),
            };
            if is_ready {
                return;
            }
            moved.await;
        }
    }

    /// Records that it takes no calls, and when it is restarted, if it is.
    pub(super) fn down(&self, state: State, restart_at: Option<Instant>) {
        let mut now = self.now();
        now.state = state;
        now.restart_at = restart_at;
        now.connection = None;
        self.moved.notify_waiters();
    }

    /// The connection for a call. If there is none, nothing was sent, so there was no side effect.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, ToolError> {
        let now = self.now();
        if let Some(connection) = now.connection.as_ref().filter(|connection| !connection.is_gone()) {
            return Ok(connection.clone());
        }
        let why = match &now.state {
            State::Starting | State::Ready => "it is being started".to_owned(),
            State::Down { why } => format!("it is being restarted: {why}"),
            State::GivenUp { why } => format!("it was given up: {why}"),
        };
        let error = ToolError::transient(format!("the server '{}' is not available: {why}", self.name));
        let error = error.no_side_effect();
        Err(match now.restart_at {
            Some(at) => error.retry_after(at.saturating_duration_since(Instant::now())),
            None => error,
        })
    }
}
