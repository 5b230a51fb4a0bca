//! Opening sessions by name (SM-8).

use super::Engine;
use crate::{
    config::RECORD_WAIT,
    record::{OpenTurn, PastSession, RecordError, Recorder},
    session::{Session, SessionOptions},
};
use std::sync::Arc;
use toolyard_core::{
    SessionId,
    event::{ENGINE_SESSION, Epoch},
};

/// Why a session could not be [opened](Engine::open): its name is taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a session named '{id}' is already open")]
#[non_exhaustive]
pub struct AlreadyOpen {
    /// The name.
    pub id: SessionId,
}

impl Engine {
    /// Returns the session of this name, and opens it with the engine's settings if it is not open. A session closes
    /// when its last clone and its last call are gone. The name `@engine` is reserved for the engine's own events.
    pub fn session(&self, id: impl Into<SessionId>) -> Session {
        self.session_with(id, SessionOptions::default())
    }

    /// Like [`session`](Self::session), with settings. They apply only if this call opens the session; an open
    /// session keeps its own. Where that must not happen unnoticed, use [`open`](Self::open).
    pub fn session_with(&self, id: impl Into<SessionId>, options: SessionOptions) -> Session {
        let (core, _) = self.core.open(id.into(), |engine| options.prepared(engine));
        Session { core }
    }

    /// Opens a session with these settings. Unlike [`session_with`](Self::session_with), it never returns one that
    /// somebody else has opened, with other settings.
    ///
    /// # Errors
    /// [`AlreadyOpen`] while a session of this name is open, and for `@engine`, which is the engine's own.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Engine, SessionOptions};
    /// let engine = Engine::builder().build().await.unwrap();
    /// let session = engine.open("ada", SessionOptions::default()).unwrap();
    /// let taken = engine.open("ada", SessionOptions::default()).unwrap_err();
    /// assert_eq!(taken.to_string(), "a session named 'ada' is already open");
    /// drop(session);
    /// assert!(engine.open("ada", SessionOptions::default()).is_ok());
    /// # }
    /// ```
    pub fn open(&self, id: impl Into<SessionId>, options: SessionOptions) -> Result<Session, AlreadyOpen> {
        let id = id.into();
        if id.as_str() == ENGINE_SESSION {
            return Err(AlreadyOpen { id });
        }
        match self.core.open(id.clone(), |engine| options.prepared(engine)) {
            (core, true) => Ok(Session { core }),
            (_, false) => Err(AlreadyOpen { id }),
        }
    }

    /// Returns the open session of this name; unlike [`session`](Self::session), it opens none. A session is open as long as
    /// somebody holds it or a call of it is in flight.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Engine, SessionId};
    /// let engine = Engine::builder().build().await.unwrap();
    /// let ada = SessionId::from("ada");
    /// assert!(engine.find(&ada).is_none());
    /// let session = engine.session("ada");
    /// assert_eq!(engine.find(&ada).unwrap().id(), session.id());
    /// drop(session);
    /// assert!(engine.find(&ada).is_none());
    /// # }
    /// ```
    pub fn find(&self, id: &SessionId) -> Option<Session> {
        self.core.open_session(id).map(|core| Session { core })
    }

    /// Opens a session that nobody has named. Its name is made of the engine's [epoch](Self::epoch) and a number: no
    /// session has had it before, in this life of the engine or in another.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Engine, SessionOptions};
    /// let engine = Engine::builder().build().await.unwrap();
    /// let [one, other] = [(); 2].map(|()| engine.open_unnamed(SessionOptions::default()));
    /// assert_eq!(one.id().as_str(), format!("session-{}-1", engine.epoch()));
    /// assert_ne!(one.id(), other.id());
    /// # }
    /// ```
    pub fn open_unnamed(&self, options: SessionOptions) -> Session {
        let id = loop {
            let id = self.core.unnamed_id();
            // An embedder may have used the name, if it has read the epoch.
            if self.core.open_session(&id).is_none() {
                break id;
            }
        };
        self.session_with(id, SessionOptions { is_unnamed: true, ..options })
    }

    /// Whether another life of the engine can go on from what this one records (SM-10).
    pub fn is_outlived(&self) -> bool {
        self.core.recorder.as_ref().is_some_and(|recording| recording.outlives_engine())
    }

    /// Waits until all that its recorder was given so far is durable, for at most 30 s: for whoever acknowledges something that
    /// nothing else waits for.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be made durable, or not in time.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws nothing.
    pub async fn flush(&self) -> Result<(), RecordError> {
        let given = self.core.recorder.as_ref().and_then(|it| it.give(|recorder| recorder.flush()));
        let Some(pending) = given else { return Ok(()) };
        let durable = self.core.tasks.timeout(RECORD_WAIT, pending).await;
        durable.unwrap_or_else(|| Err(RecordError::late()))
    }

    /// Why its recorder makes nothing durable at present, if it does not: calls that change something are refused meanwhile
    /// (JR-12).
    pub fn recorder_fault(&self) -> Option<Arc<str>> {
        // One that panics when it is asked makes nothing durable either.
        self.read(|recorder| Ok(recorder.fault())).unwrap_or_else(|error| Some(error.to_string().into()))
    }

    /// The sessions that nobody has cancelled as a whole, each as it was opened last, in this life of the engine or an earlier
    /// one: to be opened again under their names, with the settings that they had (JR-10). Empty without a recorder that
    /// outlives the engine. It may read a file.
    ///
    /// # Errors
    /// [`RecordError`], if they cannot be read.
    pub fn past_sessions(&self) -> Result<Vec<PastSession>, RecordError> {
        self.read(|recorder| recorder.past_sessions())
    }

    /// The session that had this name, as it was opened last, in this life of the engine or an earlier one; `None` if none had,
    /// and without a recorder that outlives the engine. It may read a file.
    ///
    /// # Errors
    /// [`RecordError`], if it cannot be read.
    pub fn past_session(&self, id: &SessionId) -> Result<Option<PastSession>, RecordError> {
        self.read(|recorder| recorder.past_session(id))
    }

    /// The earlier lives of the engine, the oldest first, as far as its recorder knows of them: names of lives are in no order
    /// themselves. Empty without a recorder that outlives the engine. It may read a file.
    ///
    /// # Errors
    /// [`RecordError`], if they cannot be read.
    pub fn past_epochs(&self) -> Result<Vec<Epoch>, RecordError> {
        self.read(|recorder| recorder.past_epochs())
    }

    /// The turns that earlier lives of the engine have left open, the oldest first: to be [resumed](Session::resume), in a
    /// session of their name. Empty without a recorder that outlives the engine. It may read a file.
    ///
    /// # Errors
    /// [`RecordError`], if they cannot be read.
    pub fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        self.read(|recorder| recorder.open_turns())
    }

    /// What its recorder has, if it has one.
    fn read<T: Default>(
        &self,
        read: impl FnOnce(&dyn Recorder) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        self.core.recorder.as_ref().map_or_else(|| Ok(T::default()), |recording| recording.read(read))
    }
}
