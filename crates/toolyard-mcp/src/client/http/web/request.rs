//! Requests to a server, and what their answers have in common.

use crate::client::protocol::{RequestError, WebError};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
};
use reqwest::{RequestBuilder, Response};
use rmcp::transport::{
    common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE},
    streamable_http_client::{AuthRequiredError, HttpStatusError},
};
use std::{collections::HashMap, sync::Arc};

pub(crate) type Headers = HashMap<HeaderName, HeaderValue>;

/// Where requests go, and what all of them carry.
pub(crate) struct Address {
    pub(crate) uri: Arc<str>,
    pub(crate) session: Option<Arc<str>>,
    pub(crate) token: Option<String>,
    pub(crate) headers: Headers,
}

impl Address {
    /// Sends a request with all that it carries.
    pub(crate) async fn send(self, mut request: RequestBuilder) -> Result<Response, RequestError> {
        if let Some(token) = self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in self.headers {
            if is_reserved(&name) {
                return Err(RequestError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        if let Some(session) = self.session {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        request.send().await.map_err(http)
    }
}

/// Accepts what the protocol answers with.
pub(crate) fn accepting(request: RequestBuilder) -> RequestBuilder {
    request.header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"))
}

pub(crate) fn http(error: reqwest::Error) -> RequestError {
    RequestError::Client(error.into())
}

/// Whether a header is the protocol's own, which the configuration cannot set.
fn is_reserved(name: &HeaderName) -> bool {
    let all = [ACCEPT.as_str(), HEADER_SESSION_ID, HEADER_LAST_EVENT_ID];
    all.iter().any(|reserved| name.as_str().eq_ignore_ascii_case(reserved))
}

/// A header's value as text.
pub(crate) fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Whether an answer is of this media type.
pub(crate) fn is_of(headers: &HeaderMap, media_type: &str) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|found| found.as_bytes().starts_with(media_type.as_bytes()))
}

/// The media type of an answer.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(|found| String::from_utf8_lossy(found.as_bytes()).into_owned())
}

/// The error of an answer that wants another token and says which.
pub(crate) fn challenge(response: &Response) -> Option<RequestError> {
    let wanted = response.headers().get(WWW_AUTHENTICATE)?;
    let wanted = String::from_utf8_lossy(wanted.as_bytes()).into_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Some(RequestError::AuthRequired(AuthRequiredError::new(wanted))),
        StatusCode::FORBIDDEN => Some(RequestError::Client(WebError::Forbidden(wanted))),
        _ => None,
    }
}

/// The error of a server that is busy or broken, with its wish when to try again.
pub(crate) fn failure(response: &Response) -> Option<HttpStatusError> {
    let status = response.status();
    if status != StatusCode::TOO_MANY_REQUESTS && !status.is_server_error() {
        return None;
    }
    let after =
        response.headers().get(RETRY_AFTER).and_then(|value| std::str::from_utf8(value.as_bytes()).ok());
    Some(HttpStatusError::new(status.as_u16(), after.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerConfig, client::http::connect::client};
    use reqwest::Url;

    /// A configured header does not replace one of the protocol. Nothing is sent.
    #[tokio::test]
    async fn the_headers_of_the_protocol_are_not_configured() {
        let (url, server) = (Url::parse("http://h").unwrap(), ServerConfig::http("a", "http://h"));
        let client = client(&url, server.remote.as_ref().unwrap()).unwrap();
        for (name, is_refused) in
            [("accept", true), ("mcp-session-id", true), ("last-event-id", true), ("x-a", false)]
        {
            let headers = Headers::from([(HeaderName::from_static(name), HeaderValue::from_static("a"))]);
            let to = Address { uri: "".into(), session: None, token: None, headers };
            let error = to.send(client.get("nowhere:")).await.unwrap_err();
            assert_eq!(
                matches!(error, RequestError::ReservedHeaderConflict(_)),
                is_refused,
                "{name}: {error}"
            );
        }
    }
}
