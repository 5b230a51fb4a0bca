//! `/sessions/{id}/agents`.

use super::{document::Common, limits::CapabilityNames};
use crate::{
    access::{Caller, Scope},
    app::App,
    http::{Json, PathOf, QueryOf},
    past::unrecorded,
    problem::Problem,
};
use axum::{extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use toolyard::ForkPolicy;
use utoipa::{IntoParams, ToSchema};

/// Which agent of a session a request is about.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct OfAgent {
    /// The path of the agent; `root` without one.
    pub(super) agent: Option<String>,
}

/// A sub-agent to make.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fork {
    /// Its name among the sub-agents of its parent; a number without one.
    name: Option<String>,
    /// What it may touch, within what its parent may.
    capabilities: Option<CapabilityNames>,
    /// The tools that it knows of, of those of its parent.
    only_tools: Option<Vec<String>>,
}

impl Fork {
    /// What is asked for, as the engine knows it.
    pub(crate) fn policy(self) -> Result<ForkPolicy, Problem> {
        let text = serde_json::to_string(&self).expect("what was read as JSON can be written as JSON");
        let mut policy = ForkPolicy::default().described(text);
        if let Some(name) = self.name {
            policy = policy.name(name);
        }
        if let Some(capabilities) = self.capabilities {
            policy = policy.capabilities(capabilities.read()?);
        }
        if let Some(tools) = self.only_tools {
            policy = policy.only_tools(tools);
        }
        Ok(policy)
    }
}

/// A sub-agent.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Forked {
    /// Its path, for `?agent=`.
    agent: String,
}

/// Make a sub-agent: it shares the serial pool of its session, and can only narrow what its parent may (CL-7).
#[utoipa::path(post, path = "/sessions/{id}/agents", tag = "sessions", request_body = Fork,
    params(("id" = String, Path, description = "The session", example = "demo"), OfAgent),
    responses((status = 201, description = "It is there", body = Forked), Common))]
pub(super) async fn fork(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(of): QueryOf<OfAgent>,
    Json(body): Json<Fork>,
) -> Result<(StatusCode, axum::Json<Forked>), Problem> {
    caller.needs(&[Scope::Call])?;
    app.starts()?;
    let served = app.own_session(&caller, &id)?;
    let forked = served.fork(of.agent.as_deref(), body.policy()?)?;
    if let Err(error) = forked.recorded().await {
        served.unmake(&forked);
        return Err(unrecorded(&error));
    }
    let agent = forked.agent().as_str().to_owned();
    Ok((StatusCode::CREATED, axum::Json(Forked { agent })))
}
