//! Posts a message and reads the answer: none, a message, or events.

use super::{
    body, events, refusal,
    request::{Address, accepting, challenge, is_of, media_type, text_of},
};
use crate::{
    client::{
        http::tail::Events,
        protocol::{Intake, RequestError, WebError, line},
    },
    frame::LINE_BYTES_MAX,
};
use reqwest::{Client, Response, StatusCode};
use rmcp::{
    model::{ClientJsonRpcMessage, JsonRpcMessage},
    transport::{
        common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE},
        streamable_http_client::StreamableHttpPostResponse as Answer,
    },
};

/// Posts a message.
///
/// # Errors
/// Why there is no answer, or none that is one.
///
/// # Cancel safety
/// Dropping the future loses the answer; the message may have been sent.
pub(crate) async fn post(
    client: &Client,
    to: Address,
    message: &ClientJsonRpcMessage,
    event_bytes_max: usize,
    intake: &Intake,
) -> Result<Answer, RequestError> {
    let has_session = to.session.is_some();
    let request = accepting(client.post(&*to.uri)).json(message);
    let response = to.send(request).await?;
    if let Some(error) = challenge(&response) {
        return Err(error);
    }
    match response.status() {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(Answer::Accepted),
        StatusCode::NOT_FOUND if has_session => Err(RequestError::SessionExpired),
        status if !status.is_success() => {
            refusal::read(response, message, has_session, &mut intake.pace()).await
        }
        _ => answer(response, message, event_bytes_max, intake).await,
    }
}

/// The answer in a response that is a success.
async fn answer(
    response: Response,
    message: &ClientJsonRpcMessage,
    event_bytes_max: usize,
    intake: &Intake,
) -> Result<Answer, RequestError> {
    let is_request = matches!(message, JsonRpcMessage::Request(_));
    // It should say 202; some servers say 200 and nothing more.
    if !is_request && response.content_length() == Some(0) {
        return Ok(Answer::Accepted);
    }
    let headers = response.headers();
    let session = text_of(headers, HEADER_SESSION_ID);
    if is_of(headers, EVENT_STREAM_MIME_TYPE) {
        let events: Events = events::read(response, event_bytes_max, intake);
        return Ok(Answer::Sse(events, session));
    }
    if !is_of(headers, JSON_MIME_TYPE) {
        return Err(RequestError::UnexpectedContentType(media_type(headers)));
    }
    // The place is kept until the message has been parsed.
    let mut pace = intake.pace();
    let body = body::read(response, LINE_BYTES_MAX, &mut pace).await?;
    match line::body(&body) {
        Ok(message) => Ok(Answer::Json(message, session)),
        Err(why) if is_request => Err(RequestError::Client(WebError::NotMessage(why))),
        // Nobody waits for it.
        Err(why) => {
            tracing::debug!(why, "skipped an answer that is not a message");
            Ok(Answer::Accepted)
        }
    }
}
