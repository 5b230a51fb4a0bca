//! Answers with an HTTP status that is no success.

use super::{
    body,
    request::{failure, is_of, text_of},
};
use crate::client::protocol::{Pace, RequestError};
use reqwest::{Response, StatusCode};
use rmcp::{
    model::{
        ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, JsonRpcMessage, ServerJsonRpcMessage,
    },
    transport::{
        common::http_header::{HEADER_SESSION_ID, JSON_MIME_TYPE},
        streamable_http_client::StreamableHttpPostResponse as Answer,
    },
};

/// Maximum size of the body of such an answer, in bytes.
const BYTES_MAX: usize = 64 << 10;

/// Stands for a body that broke off.
const UNREADABLE: &str = "<failed to read response body>";

/// What an answer says that refuses a message: a protocol error in its body, if there is one; else its status.
///
/// # Errors
/// What it says, if that is no protocol error.
///
/// # Cancel safety
/// Dropping the future loses the answer.
pub(crate) async fn read(
    response: Response,
    message: &ClientJsonRpcMessage,
    has_session: bool,
    pace: &mut Pace,
) -> Result<Answer, RequestError> {
    let (status, failure) = (response.status(), failure(&response));
    let is_json = is_of(response.headers(), JSON_MIME_TYPE);
    let failure = match failure {
        Some(failure) if !is_json || status == StatusCode::TOO_MANY_REQUESTS => return Err(failure.into()),
        failure => failure,
    };
    let session = text_of(response.headers(), HEADER_SESSION_ID);
    let text = match body::read(response, BYTES_MAX, pace).await {
        Ok(body) => String::from_utf8_lossy(&body).into_owned(),
        Err(error @ RequestError::ResponseBodyTooLarge { .. }) => {
            return Err(failure.map_or(error, RequestError::from));
        }
        Err(_) => UNREADABLE.to_owned(),
    };
    if !has_session && let Some(answer) = refused_discover(message, status, &text) {
        return Ok(Answer::Json(answer, None));
    }
    match protocol_error(&text).filter(|_| is_json && !is_about_token(status)) {
        Some(error) => Ok(Answer::Json(JsonRpcMessage::Error(error), session)),
        None => Err(failure.map_or_else(
            || RequestError::UnexpectedServerResponse(format!("HTTP {status}: {text}").into()),
            RequestError::from,
        )),
    }
}

/// The answer to the newer greeting from a server that refuses it. It has the id of the greeting: what refuses it may
/// not know MCP.
fn refused_discover(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    text: &str,
) -> Option<ServerJsonRpcMessage> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let is_discover = matches!(request.request, ClientRequest::DiscoverRequest(_));
    if !is_discover || !status.is_client_error() || is_about_token(status) {
        return None;
    }
    let error = protocol_error(text).map_or_else(
        || ErrorData::invalid_request(format!("server/discover rejected with HTTP {status}: {text}"), None),
        |error| error.error,
    );
    Some(ServerJsonRpcMessage::error(error, Some(request.id.clone())))
}

fn is_about_token(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

fn protocol_error(text: &str) -> Option<JsonRpcError> {
    match serde_json::from_str(text) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    }
}
