//! One request over one connection, and its response while it arrives.
//!
//! No task is started: whoever waits for the response, or reads its body, drives the connection, and whoever stops
//! ends it. Nothing is sent twice, no redirect is followed and nothing is decompressed, because nothing here knows how.

use crate::stream::{Noted, Stream};
use futures::future::{Either, select};
use hyper::{
    Request, Response,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    client::conn::http1::{self, Connection},
};
use hyper_util::rt::TokioIo;
use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll},
};

/// The most bytes that the head of a message may have.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;

/// The most headers that a message may have.
pub(crate) const HEADERS_MAX: usize = 100;

type Driver<B> = Pin<Box<Connection<TokioIo<Noted>, B>>>;

/// The body of a response, with the connection that it arrives on.
pub(crate) struct Arriving<B: Body + 'static> {
    driver: Option<Driver<B>>,
    body: Incoming,
}

/// There is no response.
#[derive(Debug)]
pub(crate) struct NoResponse {
    /// Whether any of the request has been sent.
    pub(crate) is_sent: bool,
    pub(crate) why: String,
}

/// Sends a request and waits for the head of its response.
///
/// # Errors
/// [`NoResponse`]: the connection broke, or what came is no response.
///
/// # Cancel safety
/// Dropping the future ends the connection; the request may have been sent.
pub(crate) async fn exchange<B>(
    stream: Stream,
    request: Request<B>,
) -> Result<Response<Arriving<B>>, NoResponse>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (stream, sent) = Noted::new(stream);
    let failed = |error: hyper::Error| NoResponse { is_sent: sent.is_any(), why: causes(&error) };
    let mut http = http1::Builder::new();
    http.max_headers(HEADERS_MAX).max_header_size(HEAD_BYTES_MAX).max_buf_size(2 * HEAD_BYTES_MAX);
    let (mut sender, driver) = http.handshake(TokioIo::new(stream)).await.map_err(failed)?;
    let mut driver: Driver<B> = Box::pin(driver);
    let response = Box::pin(sender.send_request(request));
    let (response, driver) = match select(response, driver.as_mut()).await {
        Either::Left((response, _)) => (response, Some(driver)),
        // The connection has ended, perhaps with the whole response.
        Either::Right((_, response)) => (response.await, None),
    };
    Ok(response.map_err(failed)?.map(|body| Arriving { driver, body }))
}

/// An error with its causes, which are where the reason is.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |error| (*error).source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

impl<B> Body for Arriving<B>
where
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // Its error, if it has one, is told by the body as well.
        if self.driver.as_mut().is_some_and(|driver| driver.as_mut().poll(cx).is_ready()) {
            self.driver = None;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Empty;
    use tokio::io::duplex;

    /// SB-2: a connection that is gone before anything was written to it has carried nothing.
    #[tokio::test]
    async fn a_connection_that_is_gone_carries_nothing() {
        let (ours, theirs) = duplex(1000);
        drop(theirs);
        let failed = exchange(Box::new(ours), Request::new(Empty::<Bytes>::new())).await.err().unwrap();
        assert!(!failed.is_sent, "{failed:?}");
        let (ours, mut theirs) = duplex(1000);
        let deaf = async {
            tokio::io::AsyncReadExt::read_u8(&mut theirs).await.unwrap();
            drop(theirs);
        };
        let (failed, ()) = tokio::join!(exchange(Box::new(ours), Request::new(Empty::<Bytes>::new())), deaf);
        assert!(failed.err().unwrap().is_sent);
    }
}
