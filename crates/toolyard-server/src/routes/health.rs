//! `/healthz` and `/readyz`.

use crate::{app::App, problem::Problem};
use axum::{extract::State, http::StatusCode};

/// Whether the server answers.
#[utoipa::path(get, path = "/healthz", tag = "operator", security(()),
    responses((status = 200, description = "It does", body = String, content_type = "text/plain")))]
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Whether the server starts something new: not while it shuts down, nor while its journal cannot be written (JR-12).
#[utoipa::path(get, path = "/readyz", tag = "operator", security(()),
    responses((status = 200, description = "It does", body = String, content_type = "text/plain"),
        (status = 503, description = "It is shutting down, or cannot record", body = Object, content_type = "application/problem+json")))]
pub(super) async fn ready(State(app): State<App>) -> Result<&'static str, Problem> {
    app.starts()?;
    match app.engine.recorder_fault() {
        None => Ok("ok\n"),
        Some(why) => {
            let detail =
                format!("nothing can be recorded, so that calls which change something are refused: {why}");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "journal", detail))
        }
    }
}
