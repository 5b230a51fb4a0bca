//! `X-Request-Id`: by what a request is found again in logs.

use super::numbered;
use axum::http::{HeaderName, HeaderValue};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use toolyard::event::Epoch;

/// The header.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Numbers the requests of one life of the server that bring no id.
#[derive(Debug, Clone)]
pub(crate) struct Number {
    prefix: Arc<str>,
    last: Arc<AtomicU64>,
}

impl Number {
    pub(super) fn new(epoch: Epoch) -> Self {
        Self { prefix: format!("{epoch}.").into(), last: Arc::default() }
    }

    /// The next id.
    pub(super) fn next(&self) -> Option<HeaderValue> {
        numbered(&[&self.prefix], self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}
