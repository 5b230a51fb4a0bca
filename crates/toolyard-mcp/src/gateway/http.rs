//! Clients over streamable HTTP: which requests are admitted, and how they are served.

use super::{connection::Gateway, handler::Handler, posted, sessions::Sessions};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::{
    body::{Body, Bytes, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use sha2::{Digest, Sha256};
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::sync::CancellationToken;

/// The only path that is served.
const PATH: &str = "/mcp";

/// Maximum number of connections; more wait. A client has one for notifications and one for each request.
const CONNECTIONS_MAX: usize = 1024;

/// Maximum number of sessions; a client that wants to start another is refused with 503.
const SESSIONS_MAX: usize = 256;

/// Time limit for receiving the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for receiving the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a session without traffic in either direction is kept. A call may take a while, as may the question before
/// it, and both count as silence.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// Maximum size of a request's body, in bytes.
const REQUEST_MAX: usize = 16 * 1024 * 1024;

/// Which requests are admitted over HTTP.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct HttpOptions {
    token: Option<[u8; 32]>,
}

impl HttpOptions {
    /// Admits only requests with this bearer token.
    #[must_use]
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(Sha256::digest(token).into());
        self
    }

    /// Checks whether this address may be served with these options.
    ///
    /// # Errors
    /// [`HttpError::Public`] if the address is not loopback and there is no token.
    pub fn check(&self, address: SocketAddr) -> Result<(), HttpError> {
        match self.token {
            None if !address.ip().is_loopback() => Err(HttpError::Public(address)),
            _ => Ok(()),
        }
    }

    /// Whether a request is admitted. Compares digests, so that timing reveals nothing about the token.
    fn admits<B>(&self, request: &Request<B>) -> bool {
        let Some(token) = self.token else { return true };
        let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|given| given.split_once(' '));
        given.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case("bearer") && Sha256::digest(given.trim()).as_slice() == token
        })
    }
}

/// Why clients cannot be served over HTTP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Anyone who can reach the address could use the tools.
    #[error("{0} is not a loopback address: a bearer token is required")]
    Public(SocketAddr),
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// rmcp's service, which handles admitted requests.
pub(super) type Mcp = StreamableHttpService<Handler, Sessions>;

/// rmcp's service and its sessions.
#[derive(Clone)]
struct Service {
    mcp: Mcp,
    sessions: Arc<Sessions>,
}

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

impl Gateway {
    /// Serves clients over streamable HTTP, at `/mcp`, until `stop` fires. Each client has its own session, from its
    /// `initialize` to its `DELETE` or to an hour of silence. There are at most 256 sessions and 1024 connections.
    /// Requests that a browser makes for a page are refused, except for the origin of a loopback address itself, where
    /// there are no pages. On a loopback address, requests that name another host are refused too, so that no page can
    /// reach it under a host name it controls. A request has 10 seconds for its head, and 30 seconds and 16 MiB for its
    /// body.
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
        let service = self.service(address, stop.clone());
        let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        loop {
            let next = async {
                let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
                (permit, listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                next = next => next,
            };
            match accepted {
                Ok((stream, _)) => {
                    let serving = serve_connection(stream, service.clone(), options.clone());
                    tokio::spawn(async move {
                        serving.await;
                        drop(permit);
                    });
                }
                // For example too many open files, which passes when others are closed.
                Err(error) => {
                    tracing::warn!(%error, "accepting a connection failed");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn service(&self, address: SocketAddr, stop: CancellationToken) -> Service {
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(stop)
            .with_max_request_body_bytes(REQUEST_MAX)
            .with_allowed_origins(own_origins(address))
            .enforce_origin_validation();
        // The names of a public address are not known here; the token guards it instead.
        let config = if address.ip().is_loopback() { config } else { config.disable_allowed_hosts() };
        let (gateway, sessions) = (self.clone(), Arc::new(Sessions::new(IDLE_TIMEOUT)));
        let make = move || Ok(Handler::new(gateway.connection()));
        Service { mcp: StreamableHttpService::new(make, sessions.clone(), config), sessions }
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

async fn serve_connection(stream: TcpStream, service: Service, options: HttpOptions) {
    let answer = service_fn(|request: Request<Incoming>| {
        let (service, options) = (service.clone(), options.clone());
        async move { Ok::<_, Infallible>(answer(request, &service, &options).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), answer).await {
        tracing::debug!(%error, "a connection failed");
    }
}

async fn answer(request: Request<Incoming>, service: &Service, options: &HttpOptions) -> Answer {
    if request.method() == Method::OPTIONS || request.uri().path() != PATH {
        return refused(StatusCode::NOT_FOUND);
    }
    if !options.admits(&request) {
        return refused(StatusCode::UNAUTHORIZED);
    }
    if starts_session(&request) && service.sessions.count().await >= SESSIONS_MAX {
        tracing::warn!("refused a client: there are already {SESSIONS_MAX} sessions");
        return refused(StatusCode::SERVICE_UNAVAILABLE);
    }
    match read_body(request).await {
        Ok(request) if request.method() == Method::POST => posted::handle(request, &service.mcp).await,
        Ok(request) => service.mcp.handle(request.map(Full::new)).await,
        Err(status) => refused(status),
    }
}

/// Whether a request has no session yet and may start one.
fn starts_session<B>(request: &Request<B>) -> bool {
    request.method() == Method::POST && !request.headers().contains_key(posted::SESSION)
}

/// Reads a request's body, within its bounds of time and size.
async fn read_body<B>(request: Request<B>) -> Result<Request<Bytes>, StatusCode>
where
    B: Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, REQUEST_MAX).collect()).await {
        Ok(Ok(body)) => Ok(Request::from_parts(head, body.to_bytes())),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn refused(status: StatusCode) -> Answer {
    let mut answer = Response::new(Empty::new().boxed());
    *answer.status_mut() = status;
    if status == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::body::Frame;
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    fn admits(options: &HttpOptions, given: Option<&str>) -> bool {
        let mut request = Request::builder();
        if let Some(given) = given {
            request = request.header(header::AUTHORIZATION, given);
        }
        options.admits(&request.body(()).unwrap())
    }

    /// An address that is not loopback requires a token.
    #[test]
    fn a_public_address_requires_a_token() {
        let public = "0.0.0.0:80".parse().unwrap();
        assert!(matches!(HttpOptions::default().check(public), Err(HttpError::Public(_))));
        assert!(HttpOptions::default().token("t").check(public).is_ok());
        assert!(HttpOptions::default().check("[::1]:80".parse().unwrap()).is_ok());
    }

    /// The wait for a body that does not arrive is bounded.
    #[tokio::test(start_paused = true)]
    async fn the_wait_for_a_body_is_bounded() {
        struct Never;
        impl Body for Never {
            type Data = Bytes;
            type Error = Infallible;
            fn poll_frame(
                self: Pin<&mut Self>,
                _: &mut Context<'_>,
            ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
                Poll::Pending
            }
        }
        let refused = read_body(Request::new(Never)).await.map(drop);
        assert_eq!(refused, Err(StatusCode::REQUEST_TIMEOUT));
        let request = read_body(Request::new(Full::new(Bytes::from_static(b"{}")))).await.unwrap();
        assert_eq!(request.into_body(), "{}");
    }

    /// Only the right token is admitted; without a token to check, every request is.
    #[test]
    fn only_the_right_token_is_admitted() {
        let guarded = HttpOptions::default().token("s3cret");
        assert!(admits(&guarded, Some("Bearer s3cret")) && admits(&guarded, Some("bearer s3cret")));
        for wrong in [None, Some("Bearer s3cre"), Some("Basic s3cret"), Some("s3cret"), Some("Bearer ")] {
            assert!(!admits(&guarded, wrong), "{wrong:?}");
        }
        assert!(admits(&HttpOptions::default(), None));
    }
}
