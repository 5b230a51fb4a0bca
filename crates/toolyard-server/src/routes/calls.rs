//! `/sessions/{id}/calls`.

use super::{agents::OfAgent, document::Common, turns::undecodable};
use crate::{
    access::{Caller, Scope},
    app::App,
    book::Served,
    http::{Json, PathOf, QueryOf, key_of},
    past::repeated_call,
    problem::Problem,
};
use axum::{extract::State, http::HeaderMap};
use serde_json::{Map, Value};
use std::sync::Arc;
use toolyard::{Batch, Call, ErrorKind, Outcome, Session};
use toolyard_wire::{Format, decode, outcome_to_json};

/// Run one call, and wait for its result: `{"name", "arguments", "call_id"?, "idempotency_key"?, "timeout_ms"?}`. The
/// answer has status 200 whether or not the call failed. It goes on if whoever asked goes away.
#[utoipa::path(post, path = "/sessions/{id}/calls", tag = "turns", request_body = Object,
    params(("id" = String, Path, description = "The session", example = "demo"), OfAgent,
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of this request get its first answer")),
    responses((status = 200, description = "What came of it", body = Object), Common))]
pub(super) async fn call(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(of): QueryOf<OfAgent>,
    headers: HeaderMap,
    Json(fields): Json<Map<String, Value>>,
) -> Result<axum::Json<Value>, Problem> {
    caller.needs(&[Scope::Call])?;
    app.starts()?;
    let served = app.own_session(&caller, &id)?;
    let agent = served.agent(of.agent.as_deref())?;
    let begun = served.begin_call()?;
    if !fields.get("name").is_some_and(Value::is_string) {
        return Err(Problem::invalid("/name", "a call names its tool"));
    }
    let text = Value::from(vec![Value::Object(fields)]).to_string();
    let message = decode(&text, Some(Format::Neutral)).map_err(|error| undecodable(&error))?;
    let call = message.into_calls().pop().ok_or_else(|| Problem::malformed("there is no call"))?;
    let key = if app.engine.is_outlived() { key_of(&headers) } else { None };
    // In a task of its own: who asked may go away (HT-2).
    let (calling, asked, of) = (served.clone(), agent, app.clone());
    let calling = tokio::spawn(async move {
        let _begun = begun;
        match key {
            None => Ok(asked.call(call).await),
            Some(key) => call_once(&of, &calling, &asked, call, format!("call:{key}")).await,
        }
    });
    let outcome = calling.await.map_err(|_| Problem::draining())??;
    served.touch();
    Ok(axum::Json(outcome_to_json(&outcome)))
}

/// Makes a call whose request has a key: one that was made before a crash has its result, and goes on until it has one.
async fn call_once(
    app: &App,
    served: &Arc<Served>,
    agent: &Session,
    call: Call,
    request: String,
) -> Result<Outcome, Problem> {
    let known = match served.opened().is_past {
        true => repeated_call(app, served, agent, request.clone(), &call).await?,
        false => None,
    };
    let outcome = match known {
        Some(turn) => {
            turn.until_over().await;
            turn.ended().and_then(|ended| ended.outcomes.first().cloned())
        }
        None => agent.dispatch(Batch::new(vec![call]).of_request(request)).await.pop(),
    };
    // What a drain suspends goes on in the next life, where this request finds it; what it refuses has brought nothing.
    let has_ended =
        |outcome: &Outcome| outcome.error().is_none_or(|error| error.kind != ErrorKind::ShuttingDown);
    outcome.filter(has_ended).ok_or_else(Problem::draining)
}
