//! `/sessions`.

use super::{
    document::Common,
    limits::{Asking, CapabilityNames, LimitNumbers},
};
use crate::{
    access::{Caller, Scope, Token},
    app::App,
    book::{Opened, Served, TurnBounds, is_name},
    http::{Json, PathOf, QueryOf},
    parent::SESSION,
    past::{Description, may_open, unrecorded},
    problem::Problem,
    wall,
};
use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use toolyard::{Capabilities, Confirmations, SessionId, SessionOptions};
use utoipa::{IntoParams, ToSchema};

/// How many a page of a list has (HT-12).
pub(super) const PAGE: usize = 100;

/// A session to open.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Open {
    /// Its name: 1 to 128 of `A-Za-z0-9._-`. Without one it is given one.
    #[schema(min_length = 1, max_length = 128, pattern = "^[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$")]
    id: Option<String>,
    /// One of the token's roles.
    role: Option<String>,
    /// What it may touch, within what its token may.
    capabilities: Option<CapabilityNames>,
    /// Which calls need approval, beside what the server says.
    confirmations: Option<Asking>,
    /// What it may spend.
    limits: Option<LimitNumbers>,
    /// One of the token's workspaces.
    workspace: Option<String>,
}

impl Open {
    /// The same under this name.
    pub(crate) fn named(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }
}

/// A session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Session)]
pub(super) struct Shown {
    id: String,
    /// `open`, or `closing` until its last call has ended.
    state: &'static str,
    /// The name of the token that opened it.
    owner: String,
    role: Option<String>,
    workspace: Option<String>,
    /// The paths of its agents.
    agents: Vec<String>,
    turns: usize,
    /// Those that have not ended.
    turns_open: usize,
    /// Questions that wait for an answer.
    questions: usize,
    opened_ms: u64,
    /// When something was last done in it.
    active_ms: u64,
}

impl Shown {
    pub(super) fn of(app: &App, served: &Served) -> Self {
        let opened = served.opened();
        Self {
            id: served.id().to_string(),
            state: if served.is_closing() { "closing" } else { "open" },
            owner: served.owner().name().to_owned(),
            role: opened.role.clone(),
            workspace: opened.workspace.clone(),
            agents: served.agents(),
            turns: served.turns.count(),
            turns_open: served.turns.open(),
            questions: app.front.questions().count_of(served.id()),
            opened_ms: opened.opened_ms,
            active_ms: served.active_ms(),
        }
    }
}

/// A page of sessions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Sessions {
    sessions: Vec<Shown>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Paging {
    /// Where to go on: `next` of the page before.
    pub(super) cursor: Option<String>,
}

/// Open a session.
#[utoipa::path(post, path = "/sessions", tag = "sessions", request_body = Open,
    responses((status = 201, description = "It is open", body = Shown, headers(("Location", description = "Where it is"))), Common))]
pub(super) async fn open(
    State(app): State<App>,
    caller: Caller,
    Json(body): Json<Open>,
) -> Result<Response, Problem> {
    caller.needs(&[Scope::Call])?;
    let served = match app.engine.is_outlived() {
        false => begin(&app, &caller.0, body)?,
        // What was recorded of its name is read.
        true => {
            let (opening, token) = (app.clone(), caller.0.clone());
            let begun = spawn_blocking(move || begin(&opening, &token, body)).await;
            begun.map_err(|_| Problem::draining())??
        }
    };
    let recorded = served.agent(None)?.recorded().await;
    if let Err(error) = recorded {
        drop(served.close());
        app.forget_closed();
        return Err(unrecorded(&error));
    }
    let location = format!("/sessions/{}", served.id());
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(Shown::of(&app, &served)))
        .into_response())
}

/// Opens a session for the holder of a token.
pub(crate) fn begin(app: &App, token: &Arc<Token>, body: Open) -> Result<Arc<Served>, Problem> {
    app.starts()?;
    let id = body.id.clone();
    if id.as_deref().is_some_and(|id| !is_name(id)) {
        return Err(Problem::invalid("/id", "a name has 1 to 128 of A-Z a-z 0-9 . _ -, and not dots alone"));
    }
    if id.as_deref() == Some(SESSION) && !token.is_parent() && app.front.deltas().is_some() {
        let why = format!("'{SESSION}' is the session of the program that has started this one");
        return Err(Problem::new(StatusCode::CONFLICT, "session_open", why));
    }
    // What the parent program has opened nobody can open again: its functions are its own.
    let is_outlived = app.engine.is_outlived() && !token.is_parent();
    app.forget_closed(); // one of this name may be over by now
    let looks_back = |id: &SessionId| if is_outlived { may_open(app, token, id) } else { Ok(false) };
    let most = Some(app.options.bounds.sessions_max);
    opened(app, token, id.map(SessionId::from), body, (most, wall::now_ms()), looks_back)
}

/// Opens a session again that an earlier life of the server has left, for the holder of its token, which may have said when it
/// was opened first.
pub(crate) fn begin_again(
    app: &App,
    token: &Arc<Token>,
    id: &str,
    body: Open,
    opened_ms: Option<u64>,
) -> Result<Arc<Served>, Problem> {
    let opened_ms = opened_ms.unwrap_or_else(wall::now_ms);
    // It was among those that its token may have.
    opened(app, token, Some(SessionId::from(id)), body, (None, opened_ms), |_| Ok(true))
}

fn opened(
    app: &App,
    token: &Arc<Token>,
    id: Option<SessionId>,
    body: Open,
    (most, opened_ms): (Option<usize>, u64),
    looks_back: impl FnOnce(&SessionId) -> Result<bool, Problem>,
) -> Result<Arc<Served>, Problem> {
    let bounds = &app.options.bounds;
    let opened = Opened {
        is_past: false,
        opened_ms,
        owner: token.clone(),
        role: body.role.clone(),
        workspace: body.workspace.clone(),
        bounds: TurnBounds {
            open_max: bounds.turns_open_max,
            kept_max: bounds.turns_kept_max,
            bytes_max: bounds.results_bytes_max,
        },
    };
    let description =
        (app.engine.is_outlived() && !token.is_parent()).then(|| Description::text(token, &body, opened_ms));
    let mut options = options(app, token, body)?;
    if let Some(description) = description {
        options = options.described(description);
    }
    let belongs = |id: &SessionId| app.front.questions().belong(id.clone(), token.name());
    app.book.open(&app.engine, id, (opened, options), most, looks_back, belongs)
}

/// What the sessions of MCP clients with this token may, who ask for nothing (HT-7).
pub(super) fn options_of(app: &App, token: &Token) -> SessionOptions {
    options(app, token, Open::default())
        .unwrap_or_else(|_| unreachable!("nothing is asked for that could be refused"))
}

/// What a body asks for, within what its token may (HT-7).
fn options(app: &App, token: &Token, body: Open) -> Result<SessionOptions, Problem> {
    let mut options = app.options.session.clone();
    if let Some(role) = body.role {
        if !token.roles.contains(&role) {
            return Err(not_given("/role", "role"));
        }
        options = options.role(role);
    }
    if let Some(name) = body.workspace {
        let set = app.options.workspaces.get(&name).filter(|_| token.workspaces.contains(&name));
        options = set.ok_or_else(|| not_given("/workspace", "workspace"))?(options);
    }
    let asked = body.capabilities.map(CapabilityNames::read).transpose()?;
    if asked.is_some() || token.capabilities.is_some() {
        let own = token.capabilities.clone().unwrap_or_default();
        options = options.capabilities(own.both(asked.unwrap_or_else(Capabilities::default)));
    }
    let asked = body.confirmations.map(Asking::read);
    let stricter = [&token.confirmations, &asked].into_iter().flatten().cloned();
    let own = app.options.confirmations.clone().unwrap_or_default();
    let all = stricter.fold(own, Confirmations::stricter);
    options = options.confirmations(all);
    Ok(body.limits.unwrap_or_default().apply(options, token.budgets))
}

fn not_given(pointer: &str, what: &str) -> Problem {
    Problem::invalid(pointer, format!("the token has no such {what}: the server's configuration gives them"))
}

/// List the sessions that the token may see.
#[utoipa::path(get, path = "/sessions", tag = "sessions", params(Paging),
    responses((status = 200, description = "A page of them, by name", body = Sessions), Common))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(paging): QueryOf<Paging>,
) -> Result<axum::Json<Sessions>, Problem> {
    caller.needs(&Scope::ALL)?;
    let sees = |served: &Served| caller.sees_all() || caller.is(served.owner());
    let served = app.book.list(paging.cursor.as_deref(), PAGE + 1, sees);
    let next = (served.len() > PAGE).then(|| served[PAGE - 1].id().to_string());
    let sessions = served.iter().take(PAGE).map(|served| Shown::of(&app, served)).collect();
    Ok(axum::Json(Sessions { sessions, next }))
}

/// Show a session.
#[utoipa::path(get, path = "/sessions/{id}", tag = "sessions", params(("id" = String, Path, description = "The session", example = "demo")),
    responses((status = 200, description = "The session", body = Shown), Common))]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<axum::Json<Shown>, Problem> {
    let served = app.session(&caller, &id)?;
    Ok(axum::Json(Shown::of(&app, &served)))
}

/// Close a session: its calls are cancelled, and it is gone once they have ended.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "sessions", params(("id" = String, Path, description = "The session", example = "demo")),
    responses((status = 202, description = "It is closing", body = Shown), Common))]
pub(super) async fn close(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<(StatusCode, axum::Json<Shown>), Problem> {
    let served = app.session(&caller, &id)?;
    if !caller.is(served.owner()) {
        caller.needs(&[Scope::Operate])?;
    }
    let closed = served.close();
    let shown = Shown::of(&app, &served);
    if let Some(closed) = &closed {
        closed.recorded().await.map_err(|error| unrecorded(&error))?;
    }
    drop(closed); // the last that holds it
    app.forget_closed();
    Ok((StatusCode::ACCEPTED, axum::Json(shown)))
}
