//! `X-Request-Id`: by what a request is found again in logs.

use axum::http::{HeaderName, HeaderValue, Request};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use toolyard::event::Epoch;
use tower_http::request_id::{MakeRequestId, RequestId};

/// The header.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Numbers the requests of one life of the server that bring no id.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    epoch: Epoch,
    last: Arc<AtomicU64>,
}

impl Number {
    pub(crate) fn new(epoch: Epoch) -> Self {
        Self { epoch, last: Arc::default() }
    }
}

impl MakeRequestId for Number {
    fn make_request_id<B>(&mut self, _: &Request<B>) -> Option<RequestId> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        HeaderValue::from_str(&format!("{}.{number}", self.epoch)).ok().map(RequestId::new)
    }
}
