//! What is known of a server at the moment: written by its supervisor, read by calls.

use super::{connection::Connection, definition::Definitions};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::{sync::Notify, time::Instant};
use toolyard::ToolError;

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// It is being started.
    Starting,
    /// It takes calls.
    Ready,
    /// It died and is started again.
    Down {
        /// What it died of.
        why: String,
    },
    /// It died too often, or was stopped.
    GivenUp {
        /// What it died of last.
        why: String,
    },
}

/// A server at the moment.
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

    /// It takes calls.
    pub(super) fn ready(&self, connection: Arc<Connection>) {
        let mut now = self.now();
        now.state = State::Ready;
        now.connection = Some(connection);
        self.moved.notify_waiters();
    }

    /// Waits until it takes calls or never will.
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

    /// It takes none, until this moment if it is started again.
    pub(super) fn down(&self, state: State, restart_at: Option<Instant>) {
        let mut now = self.now();
        now.state = state;
        now.restart_at = restart_at;
        now.connection = None;
        self.moved.notify_waiters();
    }

    /// The way to it. Where there is none nothing was sent, and so nothing was changed.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, ToolError> {
        let now = self.now();
        if let Some(connection) = now.connection.as_ref().filter(|connection| !connection.is_gone()) {
            return Ok(connection.clone());
        }
        let why = match &now.state {
            State::Starting | State::Ready => "it is being started".to_owned(),
            State::Down { why } => format!("it is being started again: {why}"),
            State::GivenUp { why } => format!("it was given up: {why}"),
        };
        let error = ToolError::transient(format!("the server '{}' is not there, {why}", self.name));
        let error = error.no_side_effect();
        Err(match now.restart_at {
            Some(at) => error.retry_after(at.saturating_duration_since(Instant::now())),
            None => error,
        })
    }
}
