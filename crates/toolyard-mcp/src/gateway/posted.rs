//! Answers posted messages: with rmcp's answer, or with ours if a message may not be parsed, or if rmcp says only that
//! it cannot read it, or takes it for a notification.

use super::{
    http::{Answer, Mcp},
    incoming::{self, Admitted, Incoming},
    limits::Share,
    refusal::Refusal,
};
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use std::borrow::Cow;

/// The header that names a session.
pub(super) const SESSION: &str = "mcp-session-id";

/// Answers a posted message. Only messages that rmcp admits are looked at.
pub(super) async fn handle(request: Request<Bytes>, share: &Share, mcp: &Mcp) -> Answer {
    let (mut head, body) = request.into_parts();
    let Admitted { text, held } = match incoming::admit(&body, share, size(&head)) {
        Ok(admitted) => admitted,
        // rmcp judges the head. It says that it cannot read the message, if it admits it.
        Err(refusal) => match mcp.handle(Request::from_parts(head, Full::<Bytes>::default())).await {
            answer if is_unread(&answer) => return refused(&refusal),
            answer => return answer,
        },
    };
    // The room is held as long as the request, to which rmcp adds the head.
    held.map(|held| head.extensions.insert(held));
    let message = match &text {
        Cow::Borrowed(text) => body.slice_ref(text.as_bytes()),
        Cow::Owned(text) => Bytes::from(text.clone()),
    };
    let answer = mcp.handle(Request::from_parts(head.clone(), Full::new(message))).await;
    if !is_unread(&answer) && answer.status() != StatusCode::ACCEPTED {
        return answer;
    }
    match incoming::read(&text) {
        Incoming::Refused(refusal) => refused(&refusal),
        Incoming::Message(message) if is_unread(&answer) => match serde_json::to_vec(&message) {
            Ok(message) => mcp.handle(Request::from_parts(head, Full::new(Bytes::from(message)))).await,
            Err(_) => answer,
        },
        _ => answer,
    }
}

fn is_unread(answer: &Answer) -> bool {
    answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE
}

/// The size of a head's headers in bytes.
fn size(head: &Parts) -> usize {
    head.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// An answer to a request has status 200; without an id it belongs to no request, and has 400.
fn refused(refusal: &Refusal) -> Answer {
    let status = if refusal.id.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let body = serde_json::to_vec(refusal).expect("a refusal serialises");
    let mut answer = Response::new(Full::new(Bytes::from(body)).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    answer
}
