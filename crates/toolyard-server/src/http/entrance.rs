//! What surrounds the routes: what every request gets, and what every answer has.
//!
//! ```text
//!   request ─► its id ─► Hosts ─┬─ a key ─► once ─┬─► routes ─► answer ─► headers
//!                               ├─────────────────┘                         ▲
//!                               └─ refused ─────────────────────────────────┘
//! ```
//!
//! One function in place of a stack of layers, each of which would be cloned for every request and look through its headers
//! again.

use super::{
    Hosts, Number,
    answered::{has_key, once},
    request_id,
};
use crate::app::App;
use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
    response::{IntoResponse as _, Response},
};
use tower::Service as _;

/// What every answer says unless it says otherwise: it is kept nowhere, is what it says it is, and tells nobody where its
/// reader was.
const FIXED: [(HeaderName, &str); 3] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Answers the requests of all connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Entrance {
    app: App,
    hosts: Hosts,
    number: Number,
    routes: Router,
}

impl Entrance {
    pub(crate) fn new(app: App, hosts: Hosts, routes: Router) -> Self {
        let number = Number::new(app.engine.epoch());
        Self { app, hosts, number, routes }
    }

    /// Answers a request.
    ///
    /// # Cancel safety
    /// Dropping the future drops what answers, which goes on only where a handler says so (HT-2).
    pub(crate) async fn answer<B>(&self, request: Request<B>) -> Response
    where
        B: HttpBody<Data = axum::body::Bytes, Error: Into<axum::BoxError>> + Send + 'static,
    {
        let id = request.headers().get(request_id::HEADER).cloned().or_else(|| self.number.next());
        let is_head = request.method() == Method::HEAD;
        let mut response = match self.hosts.check(request.uri(), request.headers()) {
            Ok(()) => self.routed(request.map(Body::new)).await,
            Err(problem) => problem.into_response(),
        };
        if !is_head && response.body().size_hint().exact().is_some_and(|bytes| bytes > 0) {
            // It is said of any body that has a length, without a place among the headers, of which six are cheap.
            response.headers_mut().remove(header::CONTENT_LENGTH);
        }
        complete(response.headers_mut(), id);
        response
    }

    async fn routed(&self, request: Request) -> Response {
        let mut routes = self.routes.clone();
        if has_key(&request) {
            // Few requests have one, and those that have none need no room for it.
            return Box::pin(once(self.app.clone(), request, routes)).await;
        }
        match routes.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

fn complete(headers: &mut HeaderMap, id: Option<HeaderValue>) {
    headers.reserve(FIXED.len() + 1);
    for (name, value) in FIXED {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    if let Some(id) = id {
        headers.entry(request_id::HEADER).or_insert(id);
    }
}
