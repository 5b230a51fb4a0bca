//! `/sessions/{id}/turns` and `/turns`.

mod recorded;
mod whole;

pub(crate) use super::goes_on::GoesOn;
pub(crate) use whole::{batch_of, finish, finish_or_suspend};

use super::{
    agents::OfAgent,
    document::Common,
    results::{As, Shown, State as TurnState, preferred, state, wait},
    streamed,
};
use crate::{
    access::{Caller, Scope},
    app::App,
    book::{Find, Served, ServedTurn},
    http::{PathOf, QueryOf, numbered},
    past::{Left, recall, unrecorded},
    problem::Problem,
};
use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::Response,
};
use futures::future::{Either, ready};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toolyard::Session;
use toolyard_wire::{DecodeError, Dialect, Format, Message, NameMap, NameRule, decode};
use utoipa::{IntoParams, ToSchema};

/// The type of a body that is a stream.
const STREAM: &[u8] = b"text/event-stream";

/// How many bytes an answer with one short result has, about.
const BODY_BYTES: usize = 512;

/// How many headers an answer has, with those that every answer has.
const HEADERS: usize = 6;

/// How many turns a list has at most.
const LIST_MAX: usize = 1000;

/// All parameters of a request that starts a turn, or goes on with one.
#[derive(Debug, Deserialize)]
pub(super) struct Asked {
    agent: Option<String>,
    from: Option<String>,
    after: Option<u64>,
    cancel_on_disconnect: Option<bool>,
    to: Option<String>,
    partial: Option<bool>,
    wait: Option<u32>,
}

impl Asked {
    /// What they are about, one by one.
    fn parts(self) -> (OfAgent, Start, As) {
        let Self { agent, from, after, cancel_on_disconnect, to, partial, wait } = self;
        (OfAgent { agent }, Start { from, after, cancel_on_disconnect }, As { to, partial, wait })
    }
}

/// A turn to start.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct Start {
    /// The format of the response: `neutral`, `openai-chat`, `openai-responses`, `anthropic` or `gemini`; without one it
    /// is detected.
    pub(super) from: Option<String>,
    /// Starts when this turn has ended. Otherwise turns run side by side (HT-3).
    pub(super) after: Option<u64>,
    /// Cancels the turn if whoever waits for it goes away (HT-2).
    pub(super) cancel_on_disconnect: Option<bool>,
}

impl Start {
    /// Passes if it asks for nothing that only a response which is sent whole, and begins, can have.
    fn alone(&self, what: &str) -> Result<(), Problem> {
        match (self.after, self.cancel_on_disconnect) {
            (None, None | Some(false)) => Ok(()),
            _ => Err(Problem::malformed(format!("{what} has neither 'after' nor 'cancel_on_disconnect'"))),
        }
    }

    pub(super) fn format(&self) -> Result<Option<Format>, Problem> {
        self.from.as_deref().map(str::parse).transpose().map_err(Problem::malformed)
    }
}

/// Run the tool calls of a model's response, or a batch in the neutral format. With `Content-Type: text/event-stream`
/// the body is the model's stream, passed on as it is written: the answer is then a stream too, which begins with the
/// turn's number and ends with its results.
#[utoipa::path(post, path = "/sessions/{id}/turns", tag = "turns",
    request_body(content((serde_json::Value = "application/json"), (Object = "text/event-stream"))),
    params(("id" = String, Path, description = "The session", example = "demo"), OfAgent, Start, As,
        ("Prefer" = Option<String>, Header, description = "`wait=SECONDS`: wait for the results, at most 300 s"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of this request get its first answer")),
    responses(
        (status = 200, description = "Its results", content((Shown = "application/json"), (Object = "text/event-stream"))),
        (status = 202, description = "It has started", body = Shown, headers(("Location", description = "Where it is"))),
        Common))]
pub(super) fn start(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(asked): QueryOf<Asked>,
    request: Request,
) -> impl Future<Output = Result<Response, Problem>> + Send {
    // No `async fn`, in which all that is read here would have a place until the end: with those places the future of a
    // request is larger than what an allocator has at hand.
    match whole::begin(&app, &caller, &id, asked, request) {
        Ok(whole::Begun::Whole(whole, body)) => Either::Left(whole.answer(app, body)),
        Ok(whole::Begun::Streamed(response)) => Either::Right(ready(Ok(response))),
        Err(problem) => Either::Right(ready(Err(problem))),
    }
}

/// 200 with the results, or 202 without.
fn answer(
    app: &App,
    served: &Served,
    turn: &Arc<ServedTurn>,
    to: Option<Format>,
    recorded: Option<bool>,
) -> Response {
    let mut shown = Shown::of(app, served, turn, to, false);
    // Said only where it matters.
    shown.recorded = recorded.filter(|is_recorded| !is_recorded && !shown.has_ended());
    let location = numbered(&["/sessions/", served.id().as_str(), "/turns/"], turn.number);
    let status = if shown.has_ended() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let mut body = Vec::with_capacity(BODY_BYTES);
    serde_json::to_writer(&mut body, &shown).expect("a turn can be written as JSON");
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // With room for those that every answer has.
    headers.reserve(HEADERS);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(location) = location {
        headers.insert(header::LOCATION, location);
    }
    response
}

fn is_stream(headers: &HeaderMap) -> bool {
    let given = headers.get(header::CONTENT_TYPE).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let given = given.trim_start().as_bytes();
    given.get(..STREAM.len()).is_some_and(|start| start.eq_ignore_ascii_case(STREAM))
}

/// Reads a response, with the tools' own names.
fn read(body: &[u8], from: Option<Format>, agent: &Session) -> Result<Message, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::malformed("the body is not UTF-8"))?;
    let message = decode(text, from).map_err(|error| undecodable(&error))?;
    Ok(with_own_names(message, agent))
}

pub(crate) fn undecodable(error: &DecodeError) -> Problem {
    // What is an option of the program is a parameter of a request.
    let what = error.to_string().replace("--from", "?from=");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "response", format!("the response cannot be read: {what}"))
}

/// Gives calls the names that their tools have, where a format knows them by others.
pub(crate) fn with_own_names(message: Message, agent: &Session) -> Message {
    let rule = Dialect::from(message.format()).name_rule();
    if rule == NameRule::Any {
        return message; // whatever tools there are
    }
    let entries = agent.definitions();
    if entries.iter().all(|entry| rule.allows(entry.name())) {
        return message; // all are known by their own
    }
    let names = NameMap::new(rule, entries.iter().map(|entry| entry.name()));
    message.with_original_names(&names)
}

/// A turn of a session.
pub(super) fn find(served: &Served, number: u64) -> Result<Arc<ServedTurn>, Problem> {
    match served.turns.find(number) {
        Find::There(turn) => Ok(turn),
        Find::Gone => {
            Err(Problem::gone(format!("turn {number} has ended, and its results are kept no longer")))
        }
        Find::Never => Err(Problem::not_found(format!("turn {number} in session '{}'", served.id()))),
    }
}

/// A turn of a session, also one of an earlier life of the server.
async fn of_any_life(
    app: &App,
    served: &Arc<Served>,
    number: u64,
    left: Left,
) -> Result<Arc<ServedTurn>, Problem> {
    match find(served, number) {
        Err(_) if served.opened().is_past => recall(app, served, number, left).await,
        found => found,
    }
}

/// Show a turn, or wait for it.
#[utoipa::path(get, path = "/sessions/{id}/turns/{turn}", tag = "turns",
    params(("id" = String, Path, description = "The session", example = "demo"), ("turn" = u64, Path, description = "Its number", example = 1), As),
    responses((status = 200, description = "The turn", body = Shown), Common))]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, number)): PathOf<(String, u64)>,
    QueryOf(shown): QueryOf<As>,
) -> Result<axum::Json<Shown>, Problem> {
    let served = app.session(&caller, &id)?;
    let to = shown.format()?;
    let turn = of_any_life(&app, &served, number, Left::Stays).await?;
    if let Some(within) = shown.waits() {
        wait(&turn, within).await;
    }
    Ok(axum::Json(Shown::of(&app, &served, &turn, to, shown.partial.unwrap_or(false))))
}

/// Send the whole response of a turn whose stream broke off: it goes on, and calls that have run keep their results
/// (CL-8).
#[utoipa::path(put, path = "/sessions/{id}/turns/{turn}", tag = "turns", request_body = serde_json::Value,
    params(("id" = String, Path, description = "The session", example = "demo"), ("turn" = u64, Path, description = "Its number", example = 1), Start, As),
    responses((status = 200, description = "Its results", body = Shown), (status = 202, description = "It goes on", body = Shown), Common))]
pub(super) async fn resend(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, number)): PathOf<(String, u64)>,
    QueryOf(asked): QueryOf<Asked>,
    request: Request,
) -> Result<Response, Problem> {
    let (_, start, shown) = asked.parts();
    caller.needs(&[Scope::Call])?;
    app.starts()?;
    let served = app.own_session(&caller, &id)?;
    let turn = of_any_life(&app, &served, number, Left::GoesOn).await?;
    let agent = served.agent(Some(turn.agent.as_str()))?;
    start.alone("a turn that goes on")?;
    let (from, to) = (start.format()?, shown.format()?);
    let (Parts { headers, .. }, body) = request.into_parts();
    crate::http::expect_type(&headers, &["application/json"])?;
    let body = app.bodies.read(body).await?;
    let message = read(&body, from, &agent)?;
    streamed::go_on(&app, &served, &turn, message)?;
    if let Some(within) = preferred(&headers).or(shown.waits()) {
        wait(&turn, within).await;
    }
    // What has been sent again is recorded when all that had come has ended.
    let recorded = app.engine.is_outlived().then_some(false);
    Ok(answer(&app, &served, &turn, to, recorded))
}

/// Which turns a list has.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Which {
    /// Only those in this state.
    state: Option<TurnState>,
    /// Only those of this session.
    session: Option<String>,
    /// As many as that, at most 1000.
    limit: Option<usize>,
}

/// Turns of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Turns {
    turns: Vec<Shown>,
}

/// List turns of the sessions that the token may see, the newest of each session first.
#[utoipa::path(get, path = "/turns", tag = "turns", params(Which),
    responses((status = 200, description = "The turns", body = Turns), Common))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(which): QueryOf<Which>,
) -> Result<axum::Json<Turns>, Problem> {
    caller.needs(&Scope::ALL)?;
    let most = which.limit.unwrap_or(100).min(LIST_MAX);
    let sessions = match &which.session {
        Some(id) => vec![app.session(&caller, id)?],
        None => app.book.list(None, usize::MAX, |served| caller.sees_all() || caller.is(served.owner())),
    };
    let mut turns = Vec::new();
    for served in sessions {
        for turn in served.turns.list() {
            if turns.len() == most {
                return Ok(axum::Json(Turns { turns }));
            }
            if which.state.is_none_or(|wanted| wanted == state(&app, &served, &turn)) {
                turns.push(Shown::brief(&app, &served, &turn));
            }
        }
    }
    Ok(axum::Json(Turns { turns }))
}

/// A turn that this caller may cancel, or one call of it: its own, or anybody's for an operator. One that is taken up for
/// this is cancelled before anything of it starts.
async fn to_cancel(
    app: &App,
    caller: &Caller,
    id: &str,
    number: u64,
    call: Option<u32>,
) -> Result<(Arc<Served>, Arc<ServedTurn>), Problem> {
    let served = app.session(caller, id)?;
    if !caller.is(served.owner()) {
        caller.needs(&[Scope::Operate])?;
    }
    let turn = of_any_life(app, &served, number, Left::IsCancelled { call }).await?;
    Ok((served, turn))
}

/// Waits until what was cancelled is durable (JR-1). Of a session that closes meanwhile all is.
async fn recorded(served: &Served, agent: &str) -> Result<(), Problem> {
    match served.agent(Some(agent)) {
        Ok(agent) => agent.recorded().await.map_err(|error| unrecorded(&error)),
        Err(_) => Ok(()),
    }
}

/// Cancel a turn: waiting calls end at once, running ones are stopped (SC-1, SC-4).
#[utoipa::path(post, path = "/sessions/{id}/turns/{turn}/cancel", tag = "turns",
    params(("id" = String, Path, description = "The session", example = "demo"), ("turn" = u64, Path, description = "Its number", example = 1)),
    responses((status = 202, description = "Its calls end"), Common))]
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, number)): PathOf<(String, u64)>,
) -> Result<StatusCode, Problem> {
    let (served, turn) = to_cancel(&app, &caller, &id, number, None).await?;
    turn.cancel();
    recorded(&served, turn.agent.as_str()).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Cancel one call of a turn (SC-4).
#[utoipa::path(post, path = "/sessions/{id}/turns/{turn}/calls/{index}/cancel", tag = "turns",
    params(("id" = String, Path, description = "The session", example = "demo"), ("turn" = u64, Path, description = "Its number", example = 1),
        ("index" = u32, Path, description = "The call's index in its turn, from 0")),
    responses((status = 202, description = "It ends, if it has not ended"), Common))]
pub(super) async fn cancel_call(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, number, index)): PathOf<(String, u64, u32)>,
) -> Result<StatusCode, Problem> {
    let (served, turn) = to_cancel(&app, &caller, &id, number, Some(index)).await?;
    if index as usize >= turn.calls() {
        return Err(Problem::not_found(format!("call {index} in turn {number}")));
    }
    turn.clone().cancel_call(index);
    recorded(&served, turn.agent.as_str()).await?;
    Ok(StatusCode::ACCEPTED)
}
