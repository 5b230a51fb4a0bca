//! The server: an engine behind HTTP.

mod connection;
mod head_timer;

use crate::{
    access::{Access, Link, PARENT, SelfApproval, Token},
    app::{App, Begun},
    front::Front,
    http::{Entrance, Hosts},
    notify::{Counts, Notify, Teller},
    options::ServerOptions,
    past::{Recovered, recover},
    reload::{ReloadError, Reloaded},
    routes,
};
use std::{io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    time::{Instant, interval_at, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolyard::{Engine, RecordError, SettingError};

use toolyard_egress::SetupError;
use toolyard_mcp::Connections;

/// How often idle sessions are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// How long connections have to end when the server stops.
const LAST_ANSWERS: Duration = Duration::from_millis(500);

/// Why a server cannot be made or cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A token whose holder would approve its own calls.
    #[error(transparent)]
    SelfApproval(#[from] SelfApproval),
    /// Two tokens have this name, under which sessions belong to them.
    #[error("two tokens are named '{0}'")]
    Twice(String),
    /// A token has the name of the program that has started this one, whose sessions belong to it.
    #[error("no token may be named '{PARENT}': it is the name of the program that has started this one")]
    Reserved,
    /// Nobody can be told of questions as it is configured.
    #[error("whoever is to be told of questions cannot be: {0}")]
    Notify(#[from] SetupError),
    /// A setting makes no sense (KT-4).
    #[error("{0}")]
    Setting(#[from] SettingError),
    /// Anybody who can reach the address could make calls.
    #[error("{0} is not a loopback address: calls without a token are for this machine alone")]
    Public(SocketAddr),
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// An engine behind HTTP: sessions, turns, confirmations and events for programs of any language, and a page for people.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use tokio_util::sync::CancellationToken;
/// use toolyard::{Engine, ToolContext, ToolSpec, tool_fn};
/// use toolyard_server::{Front, Scope, SecretHash, Server, ServerOptions, Token, new_token};
/// let greet = tool_fn(ToolSpec::pure("greet"), |(): (), _: ToolContext| async { Ok("hello") });
/// let front = Front::default();
/// let engine = Engine::builder().tool(greet).approver(front.clone()).events(front.clone()).build().await.unwrap();
/// let secret = new_token();
/// let token = Token::new("ada", SecretHash::of(&secret), [Scope::Call]);
/// let server = Server::new(engine, front, ServerOptions::default().token(token)).unwrap();
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
/// let stop = CancellationToken::new();
/// stop.cancel(); // an example does not go on forever
/// server.serve(listener, stop).await.unwrap();
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    app: App,
}

impl Server {
    /// A server for this engine, which was built with `front` as its approver and among its event sinks.
    ///
    /// # Errors
    /// [`ServeError::SelfApproval`], [`ServeError::Twice`] and [`ServeError::Reserved`], for tokens that must not be; [`ServeError::Notify`].
    pub fn new(engine: Engine, front: Front, options: ServerOptions) -> Result<Self, ServeError> {
        options.notify.as_ref().map_or(Ok(()), Notify::check_numbers)?;
        let tokens = checked(options.tokens.clone())?;
        let (link, code) = match options.has_page {
            true => {
                let (link, code) = Link::fresh();
                (Some(link), Some(code.into()))
            }
            false => (None, None),
        };
        if let Some(anybody) = &options.anybody {
            if anybody.name() == PARENT {
                return Err(ServeError::Reserved);
            }
            // What belongs to that token would be anybody's.
            if tokens.iter().any(|token| token.name() == anybody.name()) {
                return Err(ServeError::Twice(anybody.name().to_owned()));
            }
        }
        let access = Access::new(tokens, link, options.anybody.clone());
        front.questions().set_audience(access.has_approvers());
        front.questions().set_most(options.bounds.questions_max);
        let counts = Arc::<Counts>::default();
        let told = options.notify.as_ref().map(|notify| Teller::new(notify, &counts)).transpose()?;
        let (teller, told) = match told {
            Some((teller, outbox)) => {
                front.questions().tell_of_each(outbox);
                (Some(teller), Some(counts))
            }
            None => (None, None),
        };
        Ok(Self { app: App::new(engine, front, access, options, Begun { code, teller, told }) })
    }

    /// That of these requests.
    pub(crate) fn of(app: App) -> Self {
        Self { app }
    }

    /// What its requests share.
    pub(crate) fn app(&self) -> &App {
        &self.app
    }

    /// Admits the holders of these tokens from now on, instead of those before. Who is not admitted any more is refused, and
    /// the streams that they have open end. Sessions belong to the names of their tokens: whoever has a new token of that
    /// name finds them.
    ///
    /// # Errors
    /// [`ServeError::SelfApproval`], [`ServeError::Twice`] and [`ServeError::Reserved`]: nothing has changed.
    pub fn set_tokens(&self, tokens: Vec<Token>) -> Result<(), ServeError> {
        let gone = self.app.access.replace(checked(tokens)?);
        self.app.front.questions().set_audience(self.app.access.has_approvers());
        self.app.gateways.end(&gone);
        Ok(())
    }

    /// Opens the sessions again that an earlier life of the server has left, and goes on with their turns, if the engine has a
    /// recorder that outlives it (JR-8, HT-13): each session with what its token may now, under which it is found. Call it
    /// before [`serve`](Self::serve), within a runtime; it reads a file. The turns are taken up afterwards: a tool may be asked
    /// what became of a call, which takes 30 s at most. Whoever asks for one of them meanwhile waits for that. What had not ended of
    /// a session that was closed ends, cancelled.
    ///
    /// # Errors
    /// [`RecordError`], if what was recorded cannot be read: nothing is taken up.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn recover(&self) -> Result<Recovered, RecordError> {
        recover(&self.app)
    }

    /// Reads the configuration again, by what was [set](ServerOptions::reload) for that.
    ///
    /// # Errors
    /// [`ReloadError`]: nothing has changed.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop it.
    pub async fn reload(&self) -> Result<Reloaded, ReloadError> {
        let server = self.clone();
        let reloading = tokio::spawn(async move {
            let reload = server.app.options.reload.clone().ok_or(ReloadError::NotGiven)?;
            let _alone = server.app.reloading.lock().await;
            reload.reload(&server).await
        });
        // It ends early only with its runtime, or by a panic of its own.
        reloading.await.unwrap_or(Err(ReloadError::Stopping))
    }

    /// Where it is served at this address: `http://` or `https://` and the address, without a slash at the end.
    pub fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.app.options.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    /// The link of the page at this address, which is good for one browser; `None` without a page.
    pub fn link(&self, address: SocketAddr) -> Option<String> {
        self.app.code.as_ref().map(|code| format!("{}/#code={code}", self.url(address)))
    }

    /// Closes the sessions in which nothing has happened for as long as is [allowed](crate::Bounds::idle_timeout), and
    /// forgets those that have closed (HT-4). While it [serves](Self::serve) it does so every 10 s.
    pub fn sweep(&self) {
        self.app.sweep();
    }

    /// Starts nothing new from now on, and says so at `/readyz`: the engine is about to shut down.
    pub fn drain(&self) {
        self.app.drain();
    }

    /// Serves until `stop` fires. Streams then get a last event, and connections half a second for their answers. Shut the
    /// engine down before, so that whoever waits for results gets them.
    ///
    /// # Errors
    /// [`ServeError::Public`], and [`ServeError::Socket`].
    ///
    /// # Cancel safety
    /// Dropping the future stops accepting connections; open ones are served until `stop` fires.
    pub async fn serve(&self, listener: TcpListener, stop: CancellationToken) -> Result<(), ServeError> {
        let address = listener.local_addr()?;
        if self.app.options.anybody.is_some() && !address.ip().is_loopback() {
            return Err(ServeError::Public(address));
        }
        let entrance = self.entrance(address);
        let bounds = &self.app.options.bounds;
        let connections = Connections::new(bounds.strangers_max, bounds.connections_max);
        let open = TaskTracker::new();
        let sweeping = tokio::spawn(sweep(self.app.clone(), stop.clone()));
        if let Some(teller) = self.app.teller.lock().take() {
            tokio::spawn(teller.run(self.app.front.clone(), self.link_of_question(address), stop.clone()));
        }
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let (seat, tls) = (connections.accept(), self.app.options.tls.clone());
                    let (stop, held) = (stop.clone(), open.token());
                    tokio::spawn(connection::serve(stream, seat, tls, entrance.clone(), stop, held));
                }
                // Too many open files, for example, which passes when others are closed.
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
        self.app.drain();
        self.app.stop.cancel();
        open.close();
        // Whoever does not read its answer does not keep the server.
        let _ = timeout(LAST_ANSWERS, open.wait()).await;
        sweeping.abort();
        Ok(())
    }

    /// Where a question is looked at, with places for what names it. The page finds its questions itself.
    fn link_of_question(&self, address: SocketAddr) -> String {
        let path =
            if self.app.code.is_some() { "/" } else { "/sessions/{session}/confirmations/{request_id}" };
        format!("{}{path}", self.url(address))
    }

    /// What answers every request.
    fn entrance(&self, address: SocketAddr) -> Entrance {
        let options = &self.app.options;
        let hosts = Hosts::new(address, options.tls.is_some(), &options.hosts, &options.origins);
        Entrance::new(self.app.clone(), hosts, routes::router(&self.app))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("options", &self.app.options).finish_non_exhaustive()
    }
}

/// Passes tokens of which each may be, under a name of its own.
fn checked(tokens: Vec<Token>) -> Result<Vec<Token>, ServeError> {
    let mut passed: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let token = token.checked()?;
        if token.name() == PARENT {
            return Err(ServeError::Reserved);
        }
        if passed.iter().any(|other| other.name() == token.name()) {
            return Err(ServeError::Twice(token.name().to_owned()));
        }
        passed.push(token);
    }
    Ok(passed)
}

/// Closes sessions that nobody uses, and forgets those that have closed (HT-4).
async fn sweep(app: App, stop: CancellationToken) {
    let mut every = interval_at(Instant::now() + SWEEP_EVERY, SWEEP_EVERY);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = every.tick() => app.sweep(),
        }
    }
}
