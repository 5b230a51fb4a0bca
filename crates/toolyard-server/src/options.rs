//! What a server is configured with.

use crate::{access::Token, notify::Notify, reload::Reload, tls::Tls};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolyard::{Confirmations, SessionOptions};
use toolyard_mcp::ClientLimits;

/// Gives the options of a session a workspace.
pub(crate) type SetWorkspace = Arc<dyn Fn(SessionOptions) -> SessionOptions + Send + Sync>;

/// How much a server takes at once; what is beyond it is refused (HT-10).
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Bounds {
    /// The size of a request's body, in bytes. Larger ones are refused with status 413.
    pub body_bytes_max: usize,
    /// The bodies of all requests that are arriving, in bytes together. What is beyond has status 503.
    pub bodies_bytes_max: usize,
    /// Connections on which a request with a token was admitted. A request on a further one has status 503.
    pub connections_max: usize,
    /// Those of each token. A request on a further one has status 429.
    pub connections_of_token_max: usize,
    /// Connections on which none was. A new one closes the oldest of them.
    pub strangers_max: usize,
    /// Streams of events that are open at once, of each token. Further ones have status 429.
    pub streams_max: usize,
    /// Sessions that are open at once, of each token. Further ones have status 429.
    pub sessions_max: usize,
    /// Questions about calls of each token that wait for an answer. Calls that need a further one are refused.
    pub questions_max: usize,
    /// Turns of a session that have not ended. Further ones have status 429.
    pub turns_open_max: usize,
    /// Turns of a session that are kept after their end; older ones have status 410.
    pub turns_kept_max: usize,
    /// The results of a session's turns that are kept after their end, in bytes; older ones have status 410.
    pub results_bytes_max: usize,
    /// How long a session without calls, questions and requests stays open.
    pub idle_timeout: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body_bytes_max: 16 << 20,
            bodies_bytes_max: 256 << 20,
            connections_max: 4096,
            connections_of_token_max: 4032,
            strangers_max: 512,
            streams_max: 2048,
            sessions_max: 4096,
            questions_max: 4096,
            turns_open_max: 1024,
            turns_kept_max: 1000,
            results_bytes_max: 64 << 20,
            idle_timeout: Duration::from_secs(3600),
        }
    }
}

/// The settings of a server. By default it has no tokens, so that nobody is admitted but whoever opens the link of the
/// [page](Self::page).
///
/// # Examples
/// ```
/// use toolyard_server::{Scope, SecretHash, ServerOptions, Token, new_token};
/// let secret = new_token();
/// let token = Token::new("ada", SecretHash::of(&secret), [Scope::Call]);
/// let options = ServerOptions::default().token(token).page();
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
pub struct ServerOptions {
    pub(crate) tokens: Vec<Token>,
    pub(crate) has_page: bool,
    pub(crate) anybody: Option<Token>,
    pub(crate) hosts: Vec<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) bounds: Bounds,
    pub(crate) session: SessionOptions,
    pub(crate) confirmations: Option<Confirmations>,
    pub(crate) workspaces: BTreeMap<String, SetWorkspace>,
    pub(crate) clients: ClientLimits,
    pub(crate) notify: Option<Notify>,
    pub(crate) tls: Option<Tls>,
    pub(crate) reload: Option<Arc<dyn Reload>>,
}

impl ServerOptions {
    /// Admits the holder of this token.
    #[must_use]
    pub fn token(mut self, token: Token) -> Self {
        self.tokens.push(token);
        self
    }

    /// Serves the page, to whoever opens the [link](crate::Server::link) that the server makes for it (HT-9).
    #[must_use]
    pub fn page(mut self) -> Self {
        self.has_page = true;
        self
    }

    /// Lets whoever sends no token do what this one may (HT-6): for a loopback address and calls alone.
    #[must_use]
    pub fn anybody(mut self, token: Token) -> Self {
        self.anybody = Some(token);
        self
    }

    /// Names another host, such as that of a proxy in front, under which requests may reach the server (HT-8).
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Names another origin, such as `https://tools.example.com`, whose pages may use the server (HT-8).
    #[must_use]
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Sets how much it takes at once.
    #[must_use]
    pub fn bounds(mut self, bounds: Bounds) -> Self {
        self.bounds = bounds;
        self
    }

    /// Sets what all sessions are opened with, before what their token and their body say.
    #[must_use]
    pub fn session(mut self, options: SessionOptions) -> Self {
        self.session = options;
        self
    }

    /// Sets the confirmations of the engine, which those that a token or a body asks for can only make stricter (HT-7).
    #[must_use]
    pub fn confirmations(mut self, confirmations: Confirmations) -> Self {
        self.confirmations = Some(confirmations);
        self
    }

    /// Sets how much the MCP clients of each token may send at `/mcp`.
    #[must_use]
    pub fn client_limits(mut self, limits: ClientLimits) -> Self {
        self.clients = limits;
        self
    }

    /// Tells somebody elsewhere of each question that is opened (HT-5).
    #[must_use]
    pub fn notify(mut self, notify: Notify) -> Self {
        self.notify = Some(notify);
        self
    }

    /// Encrypts every connection (HT-10). A client has 10 s to begin.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets what reads the configuration again, for `POST /reload` and [`Server::reload`](crate::Server::reload).
    #[must_use]
    pub fn reload(mut self, reload: impl Reload + 'static) -> Self {
        self.reload = Some(Arc::new(reload));
        self
    }

    /// Names a workspace that sessions may have if their token [names](Token::workspaces) it too. `set` gives it to the
    /// options of a session.
    #[must_use]
    pub fn workspace(
        mut self,
        name: impl Into<String>,
        set: impl Fn(SessionOptions) -> SessionOptions + Send + Sync + 'static,
    ) -> Self {
        self.workspaces.insert(name.into(), Arc::new(set));
        self
    }
}

impl std::fmt::Debug for ServerOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOptions")
            .field("tokens", &self.tokens)
            .field("bounds", &self.bounds)
            .finish_non_exhaustive()
    }
}
