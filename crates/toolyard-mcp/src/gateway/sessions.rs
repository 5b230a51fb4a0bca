//! The sessions of clients over HTTP: rmcp's, except that they are bounded, and that a second request under the id of
//! an unanswered one is refused. Its answer would go where the first one's belongs, and the first may run long after
//! its connection broke.

use super::{
    in_flight::{InFlight, TakenId},
    limits::{Room, Share},
    refusal::Refusal,
};
use futures::{Stream, StreamExt, future, stream};
use parking_lot::{Mutex, MutexGuard};
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        Transport,
        streamable_http_server::{
            SessionId, SessionManager,
            session::{
                ServerSseMessage,
                local::{LocalSessionManager, LocalSessionManagerError, SessionError},
            },
        },
    },
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum number of sessions.
const SESSIONS_MAX: usize = 256;

tokio::task_local! {
    /// The place that the session has which the current request may open. rmcp calls `create_session` within the
    /// future that handles the request, and passes nothing on.
    static PLACE: Mutex<Option<OwnedSemaphorePermit>>;
}

/// Why a client cannot start a session: there are already this many.
#[derive(Debug)]
pub(super) struct TooManySessions(pub(super) usize);

/// The sessions, and what each may hold and has in flight.
pub(super) struct Sessions {
    rmcp: LocalSessionManager,
    requests: Requests,
    places: Arc<Semaphore>,
    room: Arc<Room>,
    openings: Share,
}

impl Sessions {
    /// Creates an empty set of sessions. One without traffic in either direction for this long ends.
    pub(super) fn new(idle_timeout: Duration, room: Arc<Room>) -> Self {
        let mut rmcp = LocalSessionManager::default();
        rmcp.session_config.keep_alive = Some(idle_timeout);
        let places = Arc::new(Semaphore::new(SESSIONS_MAX));
        Self { rmcp, requests: Requests::default(), places, openings: room.share(), room }
    }

    /// The share of this session; `None` if it does not exist.
    pub(super) fn share_of(&self, session: &str) -> Option<Share> {
        self.requests.all().get(session).map(|tracked| tracked.share.clone())
    }

    /// The share of all clients that have no session.
    pub(super) fn share_of_openings(&self) -> Share {
        self.openings.clone()
    }

    /// Handles a request that may open a session. Its place is taken first, so that there is one for every session,
    /// however many are opened at once.
    ///
    /// # Errors
    /// [`TooManySessions`], without having handled it.
    pub(super) async fn opening<T>(&self, handling: impl Future<Output = T>) -> Result<T, TooManySessions> {
        let place = self.places.clone().try_acquire_owned().map_err(|_| TooManySessions(SESSIONS_MAX))?;
        Ok(PLACE.scope(Mutex::new(Some(place)), handling).await)
    }
}

/// What is known of a session beside rmcp.
#[derive(Debug, Clone)]
struct Tracked {
    in_flight: InFlight,
    share: Share,
}

/// The unanswered requests of every session.
#[derive(Debug, Clone, Default)]
struct Requests(Arc<Mutex<HashMap<SessionId, Tracked>>>);

impl Requests {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Tracked>> {
        self.0.lock()
    }

    /// The requests of this session; none if it does not exist.
    fn of(&self, session: &SessionId) -> InFlight {
        self.all().get(session).map(|tracked| tracked.in_flight.clone()).unwrap_or_default()
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = TrackedTransport;

    async fn create_session(&self) -> Result<(SessionId, TrackedTransport), Self::Error> {
        let place = PLACE.try_with(|place| place.lock().take());
        let place = place.ok().flatten().ok_or(SessionError::SessionServiceTerminated)?;
        let (session, rmcp) = self.rmcp.create_session().await?;
        let in_flight = InFlight::default();
        let tracked = Tracked { in_flight: in_flight.clone(), share: self.room.share() };
        self.requests.all().insert(session.clone(), tracked);
        let requests = self.requests.clone();
        Ok((session.clone(), TrackedTransport { rmcp, in_flight, requests, session, _place: place }))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.rmcp.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.rmcp.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.rmcp.close_session(id).await
    }

    /// Passes a request to rmcp, unless its id is taken.
    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let taken_id = match self.requests.of(id).received(&message) {
            Ok(taken_id) => UnacceptedId(taken_id),
            Err(id) => {
                let refusal = ServerSseMessage::from_message(Refusal::duplicate_id(id).into());
                return Ok(stream::once(future::ready(refusal)).left_stream());
            }
        };
        let events = self.rmcp.create_stream(id, message).await?;
        let taken_id = taken_id.accept();
        // rmcp has finished with the request when the answer is on its way. A client that has read it may reuse the id.
        let events = events.inspect(move |event| {
            if let Some(taken_id) = &taken_id
                && event.message.as_deref().is_some_and(is_answer)
            {
                taken_id.release();
            }
        });
        Ok(events.right_stream())
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        // Only a cancellation matters here: requests do not come this way.
        let _ = self.requests.of(id).received(&message);
        self.rmcp.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.rmcp.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.rmcp.resume(id, last_event_id).await
    }
}

fn is_answer(message: &ServerJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_))
}

/// The id of a request that rmcp has not accepted yet. Dropping it frees the id.
struct UnacceptedId(Option<TakenId>);

impl UnacceptedId {
    /// rmcp has accepted the request, and will answer it.
    fn accept(mut self) -> Option<TakenId> {
        self.0.take()
    }
}

impl Drop for UnacceptedId {
    fn drop(&mut self) {
        self.0.iter().for_each(TakenId::release);
    }
}

/// A session's transport that frees ids as answers are sent, whether or not anyone reads them.
pub(super) struct TrackedTransport {
    rmcp: <LocalSessionManager as SessionManager>::Transport,
    in_flight: InFlight,
    requests: Requests,
    session: SessionId,
    _place: OwnedSemaphorePermit,
}

impl Transport<RoleServer> for TrackedTransport {
    type Error = <<LocalSessionManager as SessionManager>::Transport as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let taken_id = self.in_flight.answered(&message);
        let sending = self.rmcp.send(message);
        async move {
            let sent = sending.await;
            taken_id.iter().for_each(TakenId::release);
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.rmcp.receive().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.rmcp.close().await
    }
}

impl Drop for TrackedTransport {
    fn drop(&mut self) {
        self.requests.all().remove(&self.session);
    }
}
