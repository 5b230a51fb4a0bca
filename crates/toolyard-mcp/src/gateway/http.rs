//! Clients over streamable HTTP: which requests are admitted, and how they are served.

use super::{
    body,
    connection::Gateway,
    connections::{Connections, Seat},
    handler::Handler,
    head,
    limits::Room,
    posted,
    sessions::{Sessions, TooManySessions},
    token::{BadToken, Token},
};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, combinators::BoxBody};
use hyper::{
    body::{Body, Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// The only path that is served.
const PATH: &str = "/mcp";

/// Time limit for receiving the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of the head of a request, in bytes.
const HEAD_MAX: usize = 16 << 10;

/// Maximum size of a connection's buffers, in bytes each.
const BUFFER_MAX: usize = 64 << 10;

/// How long a session without traffic in either direction is kept. A call may take a while, as may the question before
/// it, and both count as silence.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// When a client that was refused for the moment may try again, in seconds.
const RETRY_AFTER: &str = "1";

/// Which requests are admitted over HTTP.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct HttpOptions {
    token: Option<Token>,
}

impl HttpOptions {
    /// Admits only requests with this bearer token. White space around it does not count.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(Token::new(token));
        self
    }

    /// Checks whether this address may be served with these options.
    ///
    /// # Errors
    /// [`HttpError::EmptyToken`]; if the address is not loopback, [`HttpError::Public`] without a token, and
    /// [`HttpError::ShortToken`] with one of fewer than 16 characters.
    pub fn check(&self, address: SocketAddr) -> Result<(), HttpError> {
        match &self.token {
            None if address.ip().is_loopback() => Ok(()),
            None => Err(HttpError::Public(address)),
            Some(token) => token.check(address).map_err(|bad| match bad {
                BadToken::Empty => HttpError::EmptyToken,
                BadToken::Short(chars_min) => HttpError::ShortToken { address, chars_min },
            }),
        }
    }

    /// Whether a request is admitted.
    fn admits<B>(&self, request: &Request<B>) -> bool {
        self.token.as_ref().is_none_or(|token| token.is_in(request.headers()))
    }
}

/// Why clients cannot be served over HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Anyone who can reach the address could use the tools.
    #[error("{0} is not a loopback address: a bearer token is required")]
    Public(SocketAddr),
    /// The token is empty. Whoever set it wanted one.
    #[error("the bearer token is empty")]
    EmptyToken,
    /// The token could be guessed by anyone who can reach the address.
    #[error(
        "{address} is not a loopback address: the bearer token must have at least {chars_min} characters"
    )]
    ShortToken {
        /// The address.
        address: SocketAddr,
        /// The least number of characters.
        chars_min: usize,
    },
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// rmcp's service, which handles admitted requests.
pub(super) type Mcp = StreamableHttpService<Handler, Sessions>;

/// rmcp's service, its sessions, and who is admitted to them.
#[derive(Clone)]
struct Service {
    mcp: Mcp,
    sessions: Arc<Sessions>,
    room: Arc<Room>,
    options: HttpOptions,
}

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

impl Gateway {
    /// Serves clients over streamable HTTP, at `/mcp`, until `stop` fires. Each client has its own session, from its
    /// `initialize` to its `DELETE` or to an hour of silence.
    ///
    /// Requests that a browser makes for a page are refused, except for the origin of a loopback address itself, where
    /// there are no pages. On a loopback address, requests that name another host are refused too, so that no page can
    /// reach it under a host name it controls. A request that names its host, its origin, its token or its session
    /// twice, or a target at another host, has status 400.
    ///
    /// There are at most 256 sessions, and 1024 connections on which a request was admitted; of more, each has status
    /// 503. Of connections without one there are at most 512, and a new one closes the oldest of them. A request has
    /// 10 seconds and 16 KiB for its head, and 30 seconds for its body. The size of bodies, and of all requests in
    /// flight, is bounded by [`client_limits`](Self::client_limits).
    ///
    /// # Errors
    /// As [`HttpOptions::check`], and if the socket fails.
    ///
    /// # Cancel safety
    /// Dropping the future stops accepting clients; connected ones are served until `stop` fires.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> Result<(), HttpError> {
        let address = listener.local_addr()?;
        options.check(address)?;
        let service = self.service_at(address, options, stop.clone());
        let connections = Connections::default();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    tokio::spawn(serve_connection(stream, connections.accept(), service.clone()));
                }
                // For example too many open files, which passes when others are closed.
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// The gateway as one resource of an HTTP server that is there already, which decides who is admitted, from where, and
    /// on how many connections. It has sessions of its own, which end when `stop` fires.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use http::{Request, StatusCode};
    /// use http_body_util::Empty;
    /// use hyper::body::Bytes;
    /// use toolyard::Engine;
    /// use toolyard_mcp::{Clients, Gateway};
    /// let clients = Clients::default();
    /// let engine = Engine::builder().events(clients.clone()).build().await.unwrap();
    /// let mounted = Gateway::new(engine, clients).mounted(Default::default());
    /// let request = Request::delete("/mcp").header("host", "localhost").body(Empty::<Bytes>::new()).unwrap();
    /// assert_eq!(mounted.answer(request).await.status(), StatusCode::BAD_REQUEST); // it names no session
    /// # }
    /// ```
    pub fn mounted(&self, stop: CancellationToken) -> Mounted {
        Mounted(self.service(self.config(stop).disable_allowed_hosts(), HttpOptions::default()))
    }

    fn config(&self, stop: CancellationToken) -> StreamableHttpServerConfig {
        let bytes_max = self.room().message_max(true);
        StreamableHttpServerConfig::default()
            .with_cancellation_token(stop)
            .with_max_request_body_bytes(bytes_max)
    }

    /// What answers requests to this address alone.
    fn service_at(&self, address: SocketAddr, options: HttpOptions, stop: CancellationToken) -> Service {
        let config = self.config(stop).with_allowed_origins(own_origins(address)).enforce_origin_validation();
        // The names of a public address are not known here; the token guards it instead.
        let config = if address.ip().is_loopback() { config } else { config.disable_allowed_hosts() };
        self.service(config, options)
    }

    fn service(&self, config: StreamableHttpServerConfig, options: HttpOptions) -> Service {
        let room = self.room().clone();
        let (gateway, sessions) = (self.clone(), Arc::new(Sessions::new(IDLE_TIMEOUT, room.clone())));
        let make = move || Ok(Handler::new(gateway.connection()));
        let mcp = StreamableHttpService::new(make, sessions.clone(), config);
        Service { mcp, sessions, room, options }
    }
}

/// A [gateway](Gateway::mounted) within an HTTP server. Cheap to clone; clones share their sessions.
#[derive(Clone)]
pub struct Mounted(Service);

impl Mounted {
    /// Answers a request that was admitted, whatever its path. Bodies and messages in flight are bounded by the gateway's
    /// [`client_limits`](Gateway::client_limits).
    ///
    /// # Cancel safety
    /// Dropping the future gives up the answer; calls go on until their session ends.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<BoxBody<Bytes, Infallible>>
    where
        B: Body<Data = Bytes>,
    {
        handled(request, &self.0).await
    }
}

impl std::fmt::Debug for Mounted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mounted").finish_non_exhaustive()
    }
}

/// The origins of the served loopback address, which serves no pages. Clients without another origin send it.
fn own_origins(address: SocketAddr) -> Vec<String> {
    if !address.ip().is_loopback() {
        return Vec::new();
    }
    let port = address.port();
    ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}")).to_vec()
}

async fn serve_connection(stream: TcpStream, seat: Seat, service: Service) {
    let answering = service_fn(|request: Request<Incoming>| {
        let (service, seat) = (service.clone(), seat.clone());
        async move { Ok::<_, Infallible>(answer(request, &service, &seat).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    server.max_header_size(HEAD_MAX).max_buf_size(BUFFER_MAX);
    let serving = server.serve_connection(TokioIo::new(stream), answering);
    tokio::select! {
        biased;
        () = seat.closed() => tracing::debug!("a connection that sent nothing was closed in favour of a new one"),
        served = serving => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection failed");
            }
        }
    }
}

async fn answer(request: Request<Incoming>, service: &Service, seat: &Seat) -> Answer {
    if request.method() == Method::OPTIONS || request.uri().path() != PATH {
        return refused(StatusCode::NOT_FOUND);
    }
    if !head::is_unambiguous(request.uri(), request.headers()) {
        return refused(StatusCode::BAD_REQUEST);
    }
    if !service.options.admits(&request) {
        return refused(StatusCode::UNAUTHORIZED);
    }
    if !seat.admit() {
        tracing::warn!("refused a client: there are too many connections");
        return refused(StatusCode::SERVICE_UNAVAILABLE);
    }
    handled(request, service).await
}

/// Answers a request that is admitted.
async fn handled<B>(request: Request<B>, service: &Service) -> Answer
where
    B: Body<Data = Bytes>,
{
    if request.method() != Method::POST {
        // The other methods have no body, and what comes as one is not read.
        return service.mcp.handle(request.map(|_| Empty::<Bytes>::new())).await;
    }
    post(request, service).await.unwrap_or_else(refused)
}

/// Answers a posted message, within the bounds of a client with or without a session.
///
/// # Errors
/// The status with which the message is refused.
async fn post<B>(request: Request<B>, service: &Service) -> Result<Answer, StatusCode>
where
    B: Body<Data = Bytes>,
{
    let Service { mcp, sessions, room, .. } = service;
    let (head, body) = request.into_parts();
    let session = head.headers.get(posted::SESSION).map(|session| session.to_str().unwrap_or_default());
    let names_session = session.is_some();
    let own = session.and_then(|session| sessions.share_of(session));
    let mut arriving = room.arriving();
    let body = body::read(body, room.message_max(own.is_some()), &mut arriving).await?;
    let share = own.unwrap_or_else(|| sessions.share_of_openings());
    let answering = posted::handle(Request::from_parts(head, body), &share, mcp);
    // What names a session opens none, not even if the session is unknown.
    let answer = if names_session { Ok(answering.await) } else { sessions.opening(answering).await };
    answer.map_err(|TooManySessions(max)| {
        tracing::warn!("refused a client: there are already {max} sessions");
        StatusCode::SERVICE_UNAVAILABLE
    })
}

fn refused(status: StatusCode) -> Answer {
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    match status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        }
        StatusCode::SERVICE_UNAVAILABLE => {
            headers.insert(header::RETRY_AFTER, header::HeaderValue::from_static(RETRY_AFTER));
        }
        _ => {}
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address that is not loopback requires a token that nobody can guess, and an empty token is none.
    #[test]
    fn a_public_address_requires_a_token() {
        let (public, own) = ("0.0.0.0:80".parse().unwrap(), "[::1]:80".parse().unwrap());
        let with = |token: &str| HttpOptions::default().token(token);
        assert!(matches!(HttpOptions::default().check(public), Err(HttpError::Public(_))));
        assert!(matches!(with("t").check(public), Err(HttpError::ShortToken { chars_min: 16, .. })));
        assert!(matches!(with(" ").check(own), Err(HttpError::EmptyToken)));
        assert!(with(&"t".repeat(16)).check(public).is_ok());
        assert!(with("t").check(own).is_ok() && HttpOptions::default().check(own).is_ok());
    }

    /// Without a token to check, every request is admitted.
    #[test]
    fn a_token_is_checked_where_there_is_one() {
        let request = Request::builder().header(header::AUTHORIZATION, "Bearer s3cret").body(()).unwrap();
        assert!(HttpOptions::default().admits(&request));
        assert!(HttpOptions::default().token("s3cret").admits(&request));
        assert!(!HttpOptions::default().token("other").admits(&request));
    }
}
