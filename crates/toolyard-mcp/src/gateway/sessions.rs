//! The sessions of clients over HTTP: rmcp's, but for a second request under the id of one that is not answered yet. Its
//! answer would go where that of the other belongs, whose connection may long be broken while it runs.

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

/// The sessions, and what their clients wait for.
pub(super) struct Sessions {
    rmcp: LocalSessionManager,
    open: Requests,
}

impl Sessions {
    /// No sessions; one of which nothing is heard or told for this long ends.
    pub(super) fn new(silence: Duration) -> Self {
        let mut rmcp = LocalSessionManager::default();
        rmcp.session_config.keep_alive = Some(silence);
        Self { rmcp, open: Requests::default() }
    }

    pub(super) async fn count(&self) -> usize {
        self.rmcp.sessions.read().await.len()
    }
}

/// The requests of every session.
#[derive(Debug, Clone, Default)]
struct Requests(Arc<Mutex<HashMap<SessionId, Open>>>);

impl Requests {
    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of this session; for one that there is not, none.
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

    /// Hands a request over, unless its id is taken.
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
        // The answer is on its way and rmcp has done with it. Who has read it may use its id.
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
        // It may be that a request is cancelled; none comes this way.
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

/// A request that may come to nothing before rmcp has it.
struct Boarding(Option<Flight>);

impl Boarding {
    /// rmcp has it, and will answer it.
    fn take_off(mut self) -> Option<Flight> {
        self.0.take()
    }
}

impl Drop for Boarding {
    fn drop(&mut self) {
        self.0.iter().for_each(Flight::land);
    }
}

/// A session's transport that knows when an answer is out, be there somebody who reads it or not.
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
