//! Errors of requests, as problem documents (RFC 9457).

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// Why a request is not done, and what to do instead.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    more: Map<String, Value>,
    retry_after: Option<u32>,
    closes: bool,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, code: &'static str, detail: impl Display) -> Self {
        Self { status, code, detail: detail.to_string(), more: Map::new(), retry_after: None, closes: false }
    }

    /// Adds a member to the document.
    #[must_use]
    pub(crate) fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.more.insert(member.to_owned(), value.into());
        self
    }

    /// Says when to try again, in seconds.
    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Closes the connection after the answer.
    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    #[cfg(test)]
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable word for it.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong, and what to do instead.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The members that only this kind of problem has.
    pub(crate) fn more(&self) -> &Map<String, Value> {
        &self.more
    }

    pub(crate) fn no_token() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "no_token", "send 'Authorization: Bearer TOKEN'")
    }

    pub(crate) fn unknown_token() -> Self {
        let detail = "this token is unknown: it is not configured, or the server that gave it has ended";
        Self::new(StatusCode::UNAUTHORIZED, "unknown_token", detail)
    }

    pub(crate) fn scope(needed: &str) -> Self {
        let detail = format!("this needs a token with the scope {needed}");
        Self::new(StatusCode::FORBIDDEN, "scope_missing", detail)
    }

    pub(crate) fn not_found(what: impl Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("there is no {what}"))
    }

    pub(crate) fn gone(what: impl Display) -> Self {
        Self::new(StatusCode::GONE, "gone", what)
    }

    pub(crate) fn malformed(what: impl Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", what)
    }

    /// A value that cannot be, at this place of the body as a JSON pointer.
    pub(crate) fn invalid(pointer: &str, what: impl Display) -> Self {
        let what = what.to_string();
        let errors = json!([{"pointer": pointer, "detail": what}]);
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", what).with("errors", errors)
    }

    pub(crate) fn too_many(what: impl Display) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", what).retry_after(1)
    }

    /// There is no room for this request at this moment. Its connection is closed, so that it takes none either.
    pub(crate) fn no_room(what: impl Display) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", format!("{what}: try again later"))
            .retry_after(1)
            .closing()
    }

    pub(crate) fn draining() -> Self {
        let detail = "the server is shutting down and starts nothing new";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", detail).retry_after(10)
    }

    /// The document.
    fn document(&self) -> Value {
        let mut document = json!({
            "type": format!("urn:toolyard:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Value::Object(members) = &mut document {
            members.extend(self.more.clone());
        }
        document
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.document().to_string();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
