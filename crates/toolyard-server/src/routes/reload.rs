//! `/reload`: the configuration is read again.

use super::document::Common;
use crate::{
    Server,
    access::{Caller, Scope},
    app::App,
    problem::Problem,
    reload::{ConfigFault, ReloadError, Reloaded},
};
use axum::{extract::State, http::StatusCode};
use serde_json::json;

/// Read the configuration again, and change what can be changed while it is served: all of it, or nothing if it is
/// invalid. `errors` then has each error with its line.
#[utoipa::path(post, path = "/reload", tag = "operator",
    responses((status = 200, description = "What has changed, and what is in force only after a restart", body = Reloaded), Common))]
pub(super) async fn reload(State(app): State<App>, caller: Caller) -> Result<axum::Json<Reloaded>, Problem> {
    caller.needs(&[Scope::Operate])?;
    app.starts()?;
    Server::of(app).reload().await.map(axum::Json).map_err(problem)
}

fn problem(error: ReloadError) -> Problem {
    match error {
        ReloadError::NotGiven => Problem::new(StatusCode::NOT_FOUND, "not_reloadable", error),
        ReloadError::Stopping => Problem::draining(),
        ReloadError::Invalid(faults) => invalid(&faults),
    }
}

fn invalid(faults: &[ConfigFault]) -> Problem {
    let detail = match faults {
        [only] => only.detail.clone(),
        several => format!("the configuration has {} errors: nothing was changed", several.len()),
    };
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_configuration", detail)
        .with("errors", json!(faults))
}
