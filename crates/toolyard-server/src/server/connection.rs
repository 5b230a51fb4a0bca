//! One connection, from its handshake to its end (HT-10).

use super::head_timer::HeadTimer;
use crate::{
    http::{Entrance, Held},
    tls::Tls,
};
use axum::http::Request;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::{convert::Infallible, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::task_tracker::TaskTrackerToken};
use toolyard_mcp::Seat;

/// How long the head of a request may take to arrive.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest head of a request, in bytes.
const HEAD_MAX: usize = 16 << 10;

/// The largest buffer of a connection, in bytes.
const BUFFER_MAX: usize = 64 << 10;

/// How long encryption may take to be agreed on.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves a connection until its end, or until it makes room for another one.
pub(super) async fn serve(
    stream: TcpStream,
    seat: Seat,
    tls: Option<Tls>,
    entrance: Entrance,
    stop: CancellationToken,
    open: TaskTrackerToken,
) {
    let held = Held::new(seat.clone(), open);
    tokio::select! {
        biased;
        () = seat.closed() => {}
        () = encrypted(stream, &held, tls, entrance, stop) => {}
    }
}

/// Serves a connection, encrypted if it is to be.
async fn encrypted(
    stream: TcpStream,
    held: &Held,
    tls: Option<Tls>,
    entrance: Entrance,
    stop: CancellationToken,
) {
    // Answers are short, and events are to arrive when they happen.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return answer(stream, held, entrance, stop).await };
    let encrypted = tokio::select! {
        () = stop.cancelled() => return,
        encrypted = timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)) => encrypted,
    };
    match encrypted {
        Ok(Ok(stream)) => answer(stream, held, entrance, stop).await,
        Ok(Err(error)) => tracing::debug!(%error, "a connection was not encrypted"),
        Err(_) => tracing::debug!("a connection was not encrypted in time"),
    }
}

/// Answers the requests of a connection.
async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    held: &Held,
    entrance: Entrance,
    stop: CancellationToken,
) {
    let mut server = http1::Builder::new();
    server.timer(HeadTimer::default()).header_read_timeout(HEAD_TIMEOUT);
    server.max_header_size(HEAD_MAX).max_buf_size(BUFFER_MAX);
    let seated = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(held.clone());
        let entrance = &entrance;
        async move { Ok::<_, Infallible>(entrance.answer(request).await) }
    });
    let serving = server.serve_connection(TokioIo::new(stream), seated).with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let served = tokio::select! {
        biased;
        served = &mut serving => served,
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection failed");
    }
}
