//! The sessions of clients over HTTP: rmcp's, except that a second request under the id of an unanswered one is
//! refused. Its answer would go where the first one's belongs, and the first may run long after its connection broke.

use super::{
    flying::{Flight, Open},
    refusal::Refusal,
};
use futures::{Stream, StreamExt, future, stream};
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
                local::{LocalSessionManager, LocalSessionManagerError},
            },
        },
    },
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// The sessions, and the unanswered requests of each.
pub(super) struct Sessions {
    rmcp: LocalSessionManager,
    open: Requests,
}

impl Sessions {
    /// Creates an empty set of sessions. One without traffic in either direction for this long ends.
    pub(super) fn new(silence: Duration) -> Self {
        let mut rmcp = LocalSessionManager::default();
        rmcp.session_config.keep_alive = Some(silence);
        Self { rmcp, open: Requests::default() }
    }

    pub(super) async fn count(&self) -> usize {
        self.rmcp.sessions.read().await.len()
    }
}

/// The unanswered requests of every session.
#[derive(Debug, Clone, Default)]
struct Requests(Arc<Mutex<HashMap<SessionId, Open>>>);

impl Requests {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests of this session; none if it does not exist.
    fn of(&self, session: &SessionId) -> Open {
        self.all().get(session).cloned().unwrap_or_default()
    }
}

impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = Told;

    async fn create_session(&self) -> Result<(SessionId, Told), Self::Error> {
        let (session, rmcp) = self.rmcp.create_session().await?;
        let open = Open::default();
        self.open.all().insert(session.clone(), open.clone());
        Ok((session.clone(), Told { rmcp, open, requests: self.open.clone(), session }))
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
        let flight = match self.open.of(id).has_come(&message) {
            Ok(flight) => Boarding(flight),
            Err(id) => {
                let refusal = ServerSseMessage::from_message(Refusal::twice(id).into());
                return Ok(stream::once(future::ready(refusal)).left_stream());
            }
        };
        let told = self.rmcp.create_stream(id, message).await?;
        let flight = flight.take_off();
        // rmcp has finished with the request when the answer is on its way. A client that has read it may reuse the id.
        let told = told.inspect(move |event| {
            if let Some(flight) = &flight
                && event.message.as_deref().is_some_and(is_answer)
            {
                flight.land();
            }
        });
        Ok(told.right_stream())
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        // Only a cancellation matters here: requests do not come this way.
        let _ = self.open.of(id).has_come(&message);
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

/// A flight that rmcp has not accepted yet. Dropping it frees the id.
struct Boarding(Option<Flight>);

impl Boarding {
    /// rmcp has accepted the request, and will answer it.
    fn take_off(mut self) -> Option<Flight> {
        self.0.take()
    }
}

impl Drop for Boarding {
    fn drop(&mut self) {
        self.0.iter().for_each(Flight::land);
    }
}

/// A session's transport that frees ids as answers are sent, whether or not anyone reads them.
pub(super) struct Told {
    rmcp: <LocalSessionManager as SessionManager>::Transport,
    open: Open,
    requests: Requests,
    session: SessionId,
}

impl Transport<RoleServer> for Told {
    type Error = <<LocalSessionManager as SessionManager>::Transport as Transport<RoleServer>>::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let flight = self.open.answered(&message);
        let sending = self.rmcp.send(message);
        async move {
            let sent = sending.await;
            flight.iter().for_each(Flight::land);
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

impl Drop for Told {
    fn drop(&mut self) {
        self.requests.all().remove(&self.session);
    }
}
