//! The bodies of requests, each bounded in size and time, and all together in size (HT-10).

use crate::problem::Problem;
use axum::{
    body::{Body, Bytes},
    http::StatusCode,
};
use futures::StreamExt as _;
use std::{pin::pin, sync::Arc, task::Poll, time::Duration};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads bodies. Cheap to clone; clones share the bound.
#[derive(Debug, Clone)]
pub(crate) struct Bodies {
    /// The largest body, in bytes.
    most: usize,
    /// The bytes that may arrive besides those that have arrived of unread bodies.
    left: Arc<Semaphore>,
}

impl Bodies {
    /// Bounds of one body and of all that are arriving, in bytes.
    pub(crate) fn new(most: usize, together: usize) -> Self {
        Self { most, left: Arc::new(Semaphore::new(together.min(Semaphore::MAX_PERMITS))) }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// A [`Problem`] of status 400, 408, 413, or 503 if there is no room.
    pub(crate) async fn read(&self, body: Body) -> Result<Bytes, Problem> {
        let too_late =
            |_| Problem::new(StatusCode::REQUEST_TIMEOUT, "body_timeout", "the body took too long to arrive");
        let mut arriving = pin!(self.arriving(body));
        // Most have arrived with their heads, and need no timer.
        match futures::poll!(&mut arriving) {
            Poll::Ready(read) => read,
            // In memory of its own, so that those have no place for one.
            Poll::Pending => Box::pin(timeout(BODY_TIMEOUT, arriving)).await.map_err(too_late)?,
        }
    }

    async fn arriving(&self, body: Body) -> Result<Bytes, Problem> {
        let (mut chunks, mut read) = (body.into_data_stream(), Read::Nothing);
        let mut room: Option<SemaphorePermit<'_>> = None;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|_| Problem::malformed("the body broke off"))?;
            if chunk.len() > self.most - read.len() {
                return Err(self.too_large());
            }
            let taken = self.take(chunk.len())?;
            match &mut room {
                Some(room) => room.merge(taken),
                None => room = Some(taken),
            }
            read = read.and(chunk);
        }
        Ok(read.whole())
    }

    fn take(&self, bytes: usize) -> Result<SemaphorePermit<'_>, Problem> {
        let taken = u32::try_from(bytes).ok().and_then(|bytes| self.left.try_acquire_many(bytes).ok());
        taken.ok_or_else(|| Problem::no_room("too many bodies are arriving"))
    }

    fn too_large(&self) -> Problem {
        let detail = format!("a body has at most {} bytes", self.most);
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }
}

/// What has arrived of a body.
enum Read {
    Nothing,
    /// One piece, as most bodies are: it is not copied.
    Piece(Bytes),
    Pieces(Vec<u8>),
}

impl Read {
    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Piece(piece) => piece.len(),
            Self::Pieces(all) => all.len(),
        }
    }

    /// With the next piece.
    fn and(self, next: Bytes) -> Self {
        let mut all = match self {
            Self::Nothing => return Self::Piece(next),
            Self::Piece(first) => first.to_vec(),
            Self::Pieces(all) => all,
        };
        all.extend_from_slice(&next);
        Self::Pieces(all)
    }

    fn whole(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::Piece(piece) => piece,
            Self::Pieces(all) => all.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream;
    use std::convert::Infallible;

    fn chunks(sizes: &[usize]) -> Body {
        let chunks: Vec<_> = sizes.iter().map(|size| Ok::<_, Infallible>(vec![b'x'; *size])).collect();
        Body::from_stream(stream::iter(chunks))
    }

    async fn code(bodies: &Bodies, body: Body) -> StatusCode {
        bodies.read(body).await.err().map_or(StatusCode::OK, |problem| problem.status())
    }

    /// HT-10: a body is bounded, also one that does not say how long it is.
    #[tokio::test]
    async fn a_body_is_bounded() {
        let bodies = Bodies::new(10, 100);
        assert_eq!(bodies.read(chunks(&[4, 6])).await.unwrap().len(), 10);
        assert_eq!(code(&bodies, chunks(&[4, 7])).await, StatusCode::PAYLOAD_TOO_LARGE);
    }

    /// HT-10: bodies that are arriving are bounded together, and what has arrived or broken off is not counted.
    #[tokio::test(start_paused = true)]
    async fn bodies_are_bounded_together() {
        let bodies = Bodies::new(10, 15);
        let endless = Body::from_stream(
            stream::once(async { Ok::<_, Infallible>(vec![0; 8]) }).chain(stream::pending()),
        );
        let slow = bodies.read(endless);
        let mut slow = std::pin::pin!(slow);
        assert!(futures::poll!(&mut slow).is_pending());
        assert_eq!(code(&bodies, chunks(&[8])).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(code(&bodies, chunks(&[7])).await, StatusCode::OK);
        assert_eq!(slow.await.unwrap_err().status(), StatusCode::REQUEST_TIMEOUT);
        assert_eq!(code(&bodies, chunks(&[8])).await, StatusCode::OK);
    }
}
