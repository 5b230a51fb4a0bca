//! Answers posted messages: with rmcp's answer, or with ours if rmcp says only that it cannot read a message, or takes
//! it for a notification.

use super::{
    http::{Answer, Mcp},
    incoming::{self, Incoming},
    refusal::Refusal,
};
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;

/// The header that names a session.
pub(super) const SESSION: &str = "mcp-session-id";

/// Answers a posted message. Only messages that rmcp admits are looked at.
pub(super) async fn handle(request: Request<Bytes>, mcp: &Mcp) -> Answer {
    let (head, body) = request.into_parts();
    let answer = mcp.handle(Request::from_parts(head.clone(), Full::new(body.clone()))).await;
    let is_unread = answer.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE;
    if !is_unread && answer.status() != StatusCode::ACCEPTED {
        return answer;
    }
    match incoming::read(&body) {
        Incoming::Refused(refusal) => refused(&refusal),
        Incoming::Message(message) if is_unread => match serde_json::to_vec(&message) {
            Ok(message) => mcp.handle(Request::from_parts(head, Full::new(Bytes::from(message)))).await,
            Err(_) => answer,
        },
        _ => answer,
    }
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
