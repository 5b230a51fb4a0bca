//! Streams that a server sends events on without being asked something: the one of a session, and the rest of one that
//! broke off.

use super::{
    events,
    request::{Address, accepting, challenge, failure, http, is_of, media_type},
};
use crate::client::{
    http::tail::Events,
    protocol::{Cut, Intake, RequestError, WebError},
};
use futures::StreamExt;
use parking_lot::Mutex;
use reqwest::{Client, Response, StatusCode};
use rmcp::transport::{
    common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, JSON_MIME_TYPE},
    streamable_http_client::{AuthRequiredError, SseError},
};
use std::{collections::HashSet, sync::Arc};

/// A place in a stream: its session and its last event.
type Position = (Option<Arc<str>>, Option<String>);

/// The positions behind which something comes that was not read to its end. rmcp asks for it again, at once.
#[derive(Debug, Clone, Default)]
pub(crate) struct CutOff(Arc<Mutex<HashSet<Position>>>);

impl CutOff {
    fn add(&self, position: Position) {
        self.0.lock().insert(position);
    }

    fn remove(&self, position: &Position) -> bool {
        self.0.lock().remove(position)
    }
}

/// The events of a stream, from the last event on that was read.
///
/// # Errors
/// Why there is no stream.
///
/// # Cancel safety
/// Dropping the future loses nothing.
pub(crate) async fn open(
    client: &Client,
    to: Address,
    last_event: Option<String>,
    event_bytes_max: usize,
    intake: &Intake,
    cut_off: &CutOff,
) -> Result<Events, RequestError> {
    let position = (to.session.clone(), last_event);
    if cut_off.remove(&position) {
        // rmcp does not ask again after this.
        return Err(RequestError::ServerDoesNotSupportSse);
    }
    let mut request = accepting(client.get(&*to.uri));
    if let Some(last) = &position.1 {
        request = request.header(HEADER_LAST_EVENT_ID, last);
    }
    let response = accepted(to.send(request).await?)?;
    let events = events::read(response, event_bytes_max, intake);
    Ok(watched(events, position, cut_off.clone()))
}

/// The answer, if it is a stream.
fn accepted(response: Response) -> Result<Response, RequestError> {
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        return Err(RequestError::ServerDoesNotSupportSse);
    }
    match challenge(&response) {
        // After any other error, rmcp asks again.
        Some(RequestError::Client(WebError::Forbidden(wanted))) => {
            return Err(RequestError::AuthRequired(AuthRequiredError::new(wanted)));
        }
        Some(error) => return Err(error),
        None => {}
    }
    if let Some(failure) = failure(&response) {
        return Err(failure.into());
    }
    let response = response.error_for_status().map_err(http)?;
    let headers = response.headers();
    match [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].iter().any(|media_type| is_of(headers, media_type)) {
        true => Ok(response),
        false => Err(RequestError::UnexpectedContentType(media_type(headers))),
    }
}

/// Notes where an event comes that is not read to its end.
fn watched(events: Events, (session, mut last): Position, cut_off: CutOff) -> Events {
    let watch = move |event: &Result<sse_stream::Sse, SseError>| match event {
        Ok(event) => last = event.id.clone().or(last.take()),
        Err(SseError::Body(error)) if error.is::<Cut>() => cut_off.add((session.clone(), last.clone())),
        Err(_) => {}
    };
    events.inspect(watch).boxed()
}
