//! `/sessions/{id}/tools`.

use super::{agents::OfAgent, document::Common};
use crate::{
    access::{Caller, Scope},
    app::App,
    http::{PathOf, QueryOf},
    problem::Problem,
};
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;
use toolyard::{Session, ToolSpec};
use toolyard_wire::{Dialect, definitions};
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct As {
    /// The format: `neutral`, `openai-chat`, `openai-responses`, `anthropic`, `gemini` or `mcp`.
    r#as: Option<String>,
}

/// The tools that an agent can call, as a model is told of them.
#[utoipa::path(get, path = "/sessions/{id}/tools", tag = "sessions",
    params(("id" = String, Path, description = "The session", example = "demo"), OfAgent, As),
    responses((status = 200, description = "The definitions, in the format asked for", body = Value), Common))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(of): QueryOf<OfAgent>,
    QueryOf(As { r#as }): QueryOf<As>,
) -> Result<axum::Json<Value>, Problem> {
    caller.needs(&[Scope::Call, Scope::Observe])?;
    let served = app.session(&caller, &id)?;
    let agent = served.agent(of.agent.as_deref())?;
    definitions_of(&agent, r#as.as_deref()).map(axum::Json)
}

/// The tools that an agent can call, in a format, which is the neutral one if none is named.
pub(crate) fn definitions_of(agent: &Session, format: Option<&str>) -> Result<Value, Problem> {
    let dialect: Dialect = match format {
        None => Dialect::from(toolyard_wire::Format::Neutral),
        Some(word) => word.parse().map_err(Problem::malformed)?,
    };
    let specs: Vec<ToolSpec> = agent.definitions().iter().map(|entry| agent.shown_spec(entry)).collect();
    Ok(definitions(&specs, dialect))
}
