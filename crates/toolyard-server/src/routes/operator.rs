//! What an operator sees and changes: pools and breakers.

use super::document::Common;
use crate::{
    access::{Caller, Scope},
    app::App,
    http::{Json, PathOf, QueryOf},
    problem::Problem,
    wall,
};
use axum::{extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolyard::{BreakerOf, EngineStatus, PoolError, Sandbox, ToolClass};
use utoipa::{IntoParams, ToSchema};

/// The state of the engine.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Status {
    /// The name of this life of the engine.
    epoch: String,
    version: &'static str,
    started_ms: u64,
    now_ms: u64,
    draining: bool,
    /// Why nothing can be recorded at present, if that is so (JR-12).
    journal_fault: Option<String>,
    sessions: usize,
    questions: usize,
    /// Streams of events that are open.
    streams: usize,
    /// Pools with their widths, who waits for what, breakers, rates and budgets.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    engine: EngineStatus,
}

/// The state of the engine: pools, who waits for what, breakers, rates, budgets.
#[utoipa::path(get, path = "/status", tag = "operator",
    responses((status = 200, description = "The state", body = Status), Common))]
pub(super) async fn status(State(app): State<App>, caller: Caller) -> Result<axum::Json<Status>, Problem> {
    caller.needs(&[Scope::Observe, Scope::Operate])?;
    let engine = app.engine.status().await.map_err(away)?;
    Ok(axum::Json(Status {
        epoch: app.engine.epoch().to_string(),
        version: env!("CARGO_PKG_VERSION"),
        started_ms: app.started_ms,
        now_ms: wall::now_ms(),
        draining: app.is_draining(),
        journal_fault: app.engine.recorder_fault().map(|why| why.to_string()),
        sessions: app.book.count(),
        questions: app.front.questions().count(),
        streams: app.streams.count(),
        engine,
    }))
}

fn away(error: PoolError) -> Problem {
    match error {
        PoolError::Away { .. } => Problem::draining(),
        error => Problem::invalid("/width", error),
    }
}

/// What changes of a pool.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PoolChange {
    /// How many calls run at once.
    #[schema(minimum = 1)]
    width: Option<usize>,
    /// Whether it starts no calls.
    paused: Option<bool>,
}

fn class(word: &str) -> Result<ToolClass, Problem> {
    let class = ToolClass::ALL.into_iter().find(|class| json!(class) == json!(word));
    class.ok_or_else(|| {
        Problem::not_found(format!("pool '{}': there are read, serial and concurrent", word.escape_debug()))
    })
}

/// Change the width of a pool, or pause it.
#[utoipa::path(patch, path = "/pools/{class}", tag = "operator", request_body = PoolChange,
    params(("class" = String, Path, description = "`read`, `serial` or `concurrent`")),
    responses((status = 200, description = "The pool", body = Object), Common))]
pub(super) async fn set_pool(
    State(app): State<App>,
    caller: Caller,
    PathOf(word): PathOf<String>,
    Json(change): Json<PoolChange>,
) -> Result<axum::Json<Value>, Problem> {
    caller.needs(&[Scope::Operate])?;
    let class = class(&word)?;
    if let Some(width) = change.width {
        app.engine.resize(class, width).await.map_err(away)?;
    }
    match change.paused {
        Some(true) => app.engine.pause(class).await.map_err(away)?,
        Some(false) => app.engine.resume(class).await.map_err(away)?,
        None => {}
    }
    let status = app.engine.status().await.map_err(away)?;
    Ok(axum::Json(json!(status[class])))
}

/// Whose breaker it is.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Whose {
    /// `tool`, `backend` or `sandbox`; `tool` without it.
    of: Option<String>,
}

/// Open, close or reset a breaker (CB-10).
#[utoipa::path(post, path = "/breakers/{name}/{action}", tag = "operator",
    params(("name" = String, Path, description = "The tool, back-end or sandbox"),
        ("action" = String, Path, description = "`open`, `close` or `reset`"), Whose),
    responses((status = 204, description = "It is done"), Common))]
pub(super) async fn set_breaker(
    State(app): State<App>,
    caller: Caller,
    PathOf((name, action)): PathOf<(String, String)>,
    QueryOf(whose): QueryOf<Whose>,
) -> Result<StatusCode, Problem> {
    caller.needs(&[Scope::Operate])?;
    let of = match whose.of.as_deref().unwrap_or("tool") {
        "tool" => BreakerOf::tool(name.as_str()),
        "backend" => BreakerOf::backend(name.as_str()),
        "sandbox" => {
            let sandbox = serde_json::from_value::<Sandbox>(json!(name));
            BreakerOf::sandbox(
                sandbox.map_err(|_| Problem::not_found(format!("sandbox '{}'", name.escape_debug())))?,
            )
        }
        _ => return Err(Problem::malformed("of is tool, backend or sandbox")),
    };
    let is_there = match action.as_str() {
        "open" => app.engine.force_open(&of),
        "close" => app.engine.force_closed(&of),
        "reset" => app.engine.reset_breaker(&of),
        _ => return Err(Problem::not_found("such action: there are open, close and reset")),
    };
    if is_there {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::not_found(format!("breaker '{}'", name.escape_debug())))
    }
}
