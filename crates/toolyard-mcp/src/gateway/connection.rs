//! Connections and their sessions.

use super::{
    clients::{Client, Clients},
    handler::Handler,
    limits::{ClientLimits, Room},
    pipes::Pipes,
    redact::MaybeRedactor,
    transport::InOrder,
};
use rmcp::{
    RoleServer,
    service::{Peer, RequestContext, ServerInitializeError, serve_server_with_ct},
};
use std::{
    convert::Infallible,
    fmt,
    future::pending,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Engine, Session, SessionOptions};

/// Maximum number of characters of a client's name in the name of its session.
const NAME_MAX: usize = 64;

/// Minimum time between two notifications of changed tools: a server that comes back changes them one by one.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(200);

/// Why a connection could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The client's first message does not start an MCP connection.
    #[error("the client does not speak MCP: {0}")]
    Opening(String),
    /// The connection failed because of a fault in this program.
    #[error("the connection failed: {0}")]
    Failed(String),
}

/// Serves the tools of an engine to MCP clients. Cheap to clone; clones share the engine.
///
/// # Examples
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use tokio_util::sync::CancellationToken;
/// use toolyard::Engine;
/// use toolyard_mcp::{Clients, Gateway};
/// let clients = Clients::default();
/// let engine = Engine::builder().approver(clients.clone()).events(clients.clone()).build().await.unwrap();
/// let gateway = Gateway::new(engine, clients);
/// let (read, write) = tokio::io::split(tokio::io::empty()); // the ends of a pipe or a socket
/// gateway.serve(read, write, CancellationToken::new()).await.unwrap();
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    engine: Engine,
    clients: Clients,
    options: SessionOptions,
    names: Names,
    /// Whether its clients are asked about their own calls.
    asks: bool,
    opened: Arc<AtomicU64>,
    room: Arc<Room>,
}

impl Gateway {
    /// Creates a gateway to an engine that was built with these clients.
    pub fn new(engine: Engine, clients: Clients) -> Self {
        let room = Room::new(ClientLimits::default());
        Self {
            engine,
            clients,
            options: SessionOptions::default().without_resume(),
            names: Names::Plain,
            asks: true,
            opened: Arc::default(),
            room,
        }
    }

    /// Sets how much clients may send: all clients of this gateway and of its later clones together.
    #[must_use]
    pub fn client_limits(mut self, limits: ClientLimits) -> Self {
        self.room = Room::new(limits);
        self
    }

    /// Sets the options of clients' sessions that differ from the engine's.
    #[must_use]
    pub fn session_options(mut self, options: SessionOptions) -> Self {
        self.options = options.without_resume();
        self
    }

    /// Serves its client in this session, which stays its own: for one client, whose idempotency keys are to be known
    /// under a name that holds across lives of the engine (JR-10). When the client disconnects, the session is cancelled
    /// like any other.
    #[must_use]
    pub fn in_session(mut self, session: Session) -> Self {
        self.names = Names::One(session);
        self
    }

    /// Gives each connection a session whose name no other one has, in this life of the engine or in another: for an engine
    /// with a journal, in which a name stands for whoever has used it before (JR-10). The names begin with
    /// [`UNIQUE_PREFIX`](Self::UNIQUE_PREFIX).
    #[must_use]
    pub fn unique_sessions(mut self) -> Self {
        self.names = Names::Unique;
        self
    }

    /// How the names of [unique sessions](Self::unique_sessions) begin.
    pub const UNIQUE_PREFIX: &str = "mcp:";

    /// Asks its clients no questions about their own calls: somebody else answers them, whom the engine's approver asks.
    /// See [`Clients::asks`].
    #[must_use]
    pub fn without_questions(mut self) -> Self {
        self.asks = false;
        self
    }

    /// Serves one client until it disconnects or `stop` fires. Its session is then cancelled; the engine keeps running.
    /// A client that closes its end still gets its answers for up to 5 s.
    ///
    /// # Errors
    /// [`ServeError`] if the client does not speak MCP, or if the connection fails.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the client's session, and its calls with it.
    pub async fn serve<R, W>(&self, read: R, write: W, stop: CancellationToken) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let connection = self.connection();
        let _guard = SessionGuard(connection.clone());
        let transport = InOrder::new(Pipes::new(read, write, self.room.clone()));
        match serve_server_with_ct(Handler::new(connection), transport, stop).await {
            Ok(running) => {
                let peer = running.peer().clone();
                tokio::select! {
                    biased;
                    ended = running.waiting() => {
                        ended.map(|_| ()).map_err(|error| ServeError::Failed(error.to_string()))
                    }
                    never = self.notify_tool_changes(peer) => match never {},
                }
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                Err(ServeError::Opening("its first message is not initialize".to_owned()))
            }
            Err(error) => Err(ServeError::Opening(error.to_string())),
        }
    }

    /// The session of a client of this name.
    fn session_of(&self, client: &str) -> Session {
        let Self { engine, options, names, opened, .. } = self;
        let before = match names {
            Names::One(session) => return session.clone(),
            Names::Plain => client.to_owned(),
            Names::Unique => format!("{}{client}:{}", Self::UNIQUE_PREFIX, engine.epoch()),
        };
        // A session of this name may be somebody else's: then this is another one (SM-8).
        loop {
            let number = opened.fetch_add(1, Ordering::Relaxed) + 1;
            if let Ok(session) = engine.open(format!("{before}-{number}"), options.clone()) {
                return session;
            }
        }
    }

    /// The room that clients' messages share.
    pub(super) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// A new connection.
    pub(super) fn connection(&self) -> Arc<Connection> {
        Arc::new(Connection { gateway: self.clone(), open: OnceLock::new() })
    }

    /// Notifies a client whenever the tools change.
    async fn notify_tool_changes(&self, peer: Peer<RoleServer>) -> Infallible {
        let mut changes = self.engine.registry().watch();
        // Ends when the engine has shut down: nothing changes any more.
        while changes.changed().await.is_ok() {
            // If the client is gone, that is noticed elsewhere.
            let _ = peer.notify_tool_list_changed().await;
            sleep(NOTIFY_INTERVAL).await;
        }
        pending().await
    }
}

/// Which session a connection has.
#[derive(Clone)]
enum Names {
    /// One with the client's name and a number.
    Plain,
    /// One with the client's name, the engine's epoch and a number.
    Unique,
    /// This one.
    One(Session),
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway").field("engine", &self.engine).finish_non_exhaustive()
    }
}

/// A connection, and its session once that is open.
pub(super) struct Connection {
    gateway: Gateway,
    /// Its session, and whether the client can ask its user. Set by the first request, which brings the client's name.
    open: OnceLock<(Session, bool)>,
}

impl Connection {
    pub(super) fn engine(&self) -> &Engine {
        &self.gateway.engine
    }

    pub(super) fn clients(&self) -> &Clients {
        &self.gateway.clients
    }

    /// The connection's session.
    pub(super) fn session(&self, context: &RequestContext<RoleServer>) -> &Session {
        &self.open.get_or_init(|| self.open_session(context)).0
    }

    /// Whether the client can ask its user.
    pub(super) fn can_ask(&self, context: &RequestContext<RoleServer>) -> bool {
        self.open.get_or_init(|| self.open_session(context)).1
    }

    fn open_session(&self, context: &RequestContext<RoleServer>) -> (Session, bool) {
        let Gateway { engine, clients, asks, .. } = &self.gateway;
        let name = context.client_info().map(|client| client.name).unwrap_or_default();
        let session = self.gateway.session_of(&plain(&name));
        let client = Client::of(context.peer.clone(), *asks, MaybeRedactor::new(engine.redactor()));
        let can_ask = client.elicits;
        clients.insert(session.id().clone(), client);
        (session, can_ask)
    }
}

/// A client's name as part of a session's name: characters other than letters, digits, dots and dashes become `_`.
fn plain(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let name: String = name.chars().take(NAME_MAX).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "client".to_owned() } else { name }
}

/// Ends a connection's session on drop.
pub(super) struct SessionGuard(pub(super) Arc<Connection>);

impl Drop for SessionGuard {
    fn drop(&mut self) {
        if let Some((session, _)) = self.0.open.get() {
            self.0.clients().remove(session.id());
            session.cancel();
        }
    }
}
