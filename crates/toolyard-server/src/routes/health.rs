//! `/healthz` and `/readyz`.

use crate::{app::App, problem::Problem};
use axum::extract::State;

/// Whether the server answers.
#[utoipa::path(get, path = "/healthz", tag = "operator", security(()),
    responses((status = 200, description = "It does", body = String, content_type = "text/plain")))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether the server starts something new: not while it shuts down.
#[utoipa::path(get, path = "/readyz", tag = "operator", security(()),
    responses((status = 200, description = "It does", body = String, content_type = "text/plain"),
        (status = 503, description = "It is shutting down", body = Object, content_type = "application/problem+json")))]
pub(super) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    app.starts().map(|()| "ok\n")
}
