//! Answers of the proxy itself.

use crate::{not_sent::NotSent, origin::OriginError};
use http::{
    HeaderValue, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderName},
};
use hyper::body::Bytes;

/// Tells an answer of the proxy from one of an origin (RFC 9209).
const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// Tells clients of models, which send a request again that was answered by 429, that it does not help.
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// Why a request is not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) kind: Kind,
    /// A sentence for whoever reads the answer.
    pub(super) why: String,
}

/// What kind of answer it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It makes no sense.
    Invalid,
    /// It is not allowed.
    Denied,
    /// It is one too many.
    TooMany,
    /// Nothing is under the name that it begins with.
    NotFound,
    /// The origin cannot be reached, or has not answered.
    Failed,
}

impl Refusal {
    pub(super) fn invalid(why: impl Into<String>) -> Self {
        Self { kind: Kind::Invalid, why: why.into() }
    }

    pub(super) fn denied(why: impl Into<String>) -> Self {
        Self { kind: Kind::Denied, why: why.into() }
    }

    pub(super) fn too_many(why: impl Into<String>) -> Self {
        Self { kind: Kind::TooMany, why: why.into() }
    }

    pub(super) fn not_found(why: impl Into<String>) -> Self {
        Self { kind: Kind::NotFound, why: why.into() }
    }

    pub(super) fn failed(why: impl Into<String>) -> Self {
        Self { kind: Kind::Failed, why: why.into() }
    }

    /// The answer.
    pub(super) fn response(&self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(format!("{}\n", self.why)));
        let (status, proxy_status) = match self.kind {
            Kind::Invalid => (StatusCode::BAD_REQUEST, "toolyard; error=http_request_error"),
            Kind::Denied => (StatusCode::FORBIDDEN, "toolyard; error=http_request_denied"),
            Kind::TooMany => (StatusCode::TOO_MANY_REQUESTS, "toolyard; error=http_request_denied"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "toolyard; error=http_request_error"),
            Kind::Failed => (StatusCode::BAD_GATEWAY, "toolyard; error=destination_unavailable"),
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(PROXY_STATUS, HeaderValue::from_static(proxy_status));
        if self.kind == Kind::TooMany {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

impl From<NotSent> for Refusal {
    fn from(not_sent: NotSent) -> Self {
        let kind = if matches!(not_sent, NotSent::Refused { .. }) { Kind::Denied } else { Kind::Failed };
        Self { kind, why: not_sent.to_string() }
    }
}

impl From<OriginError> for Refusal {
    fn from(error: OriginError) -> Self {
        Self::invalid(error.to_string())
    }
}
