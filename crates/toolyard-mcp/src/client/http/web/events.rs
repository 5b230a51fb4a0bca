//! Events of bounded size, read no further than there is a place for them.

use super::meter::Meter;
use crate::client::{
    http::tail::Events,
    protocol::{Cut, Intake, Pace},
};
use futures::{FutureExt, StreamExt, channel::mpsc, stream};
use hyper::body::Bytes;
use reqwest::Response;
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::{Sse, SseStream};
use std::convert::Infallible;

/// Size of an event from which on the memory for it is not kept for the next one, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// The events of a body, each of at most so many bytes. Nothing comes after an error.
pub(crate) fn read(response: Response, bytes_max: usize, intake: &Intake) -> Events {
    let reader = Reader {
        response,
        rest: Bytes::new(),
        parser: Parser::default(),
        meter: Meter::default(),
        bytes_max,
        pace: intake.pace(),
    };
    stream::unfold(Some(reader), |reader| async {
        let mut reader = reader?;
        let event = reader.next().await?;
        let reader = event.is_ok().then_some(reader);
        Some((event, reader))
    })
    .boxed()
}

struct Reader {
    response: Response,
    /// What was read and belongs to the next events.
    rest: Bytes,
    parser: Parser,
    meter: Meter,
    bytes_max: usize,
    pace: Pace,
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        match self.event().await {
            Ok(event) => event.map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// The next event; `None` at the end. The one before it has been parsed.
    async fn event(&mut self) -> Result<Option<Sse>, SseError> {
        self.pace.done();
        loop {
            if self.rest.is_empty() {
                let read = self.pace.read(self.meter.bytes(), self.response.chunk()).await;
                let read = read.map_err(|slow| body(Cut::Slow(slow)))?;
                let Some(chunk) = read.map_err(|error| body(error.without_url()))? else { return Ok(None) };
                self.rest = chunk;
            }
            let bytes_before = self.meter.bytes();
            let measured = self.meter.measure(&self.rest, self.bytes_max);
            let end = measured.map_err(|_| body(Cut::TooLarge(self.bytes_max)))?;
            let piece = self.rest.split_to(end.unwrap_or(self.rest.len()));
            let bytes = bytes_before + piece.len();
            let event = self.parser.feed(piece)?;
            if end.is_some() && bytes > KEPT_BYTES {
                self.parser = Parser::default();
            }
            if event.is_some() {
                return Ok(event);
            }
        }
    }
}

fn body(error: impl std::error::Error + Send + Sync + 'static) -> SseError {
    SseError::Body(Box::new(error))
}

/// Parses the events in pieces.
struct Parser {
    pieces: mpsc::UnboundedSender<Result<Bytes, Infallible>>,
    events: Events,
}

impl Default for Parser {
    fn default() -> Self {
        let (pieces, receiver) = mpsc::unbounded();
        Self { pieces, events: SseStream::from_bytes_stream(receiver).boxed() }
    }
}

impl Parser {
    /// The event that ends in this piece, if one does. A piece contains no more than one end.
    fn feed(&mut self, piece: Bytes) -> Result<Option<Sse>, SseError> {
        self.pieces.unbounded_send(Ok(piece)).expect("the receiver is in this parser");
        self.events.next().now_or_never().flatten().transpose()
    }
}
