//! `/confirmations`, and those of a session: the questions about calls that need approval (PO-4).

use super::{
    document::Common,
    sessions::{PAGE, Paging},
};
use crate::{
    access::{Caller, Scope},
    app::App,
    http::{Json, PathOf, QueryOf},
    problem::Problem,
    questions::{Asked, How, Settled},
    wall,
};
use axum::{extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolyard::{Answer, AnswerError, CallDigest, RequestId, SessionId, sheet::Sheet};
use utoipa::{IntoParams, ToSchema};

/// How long arguments in a list are, in bytes; of longer ones there is only the summary.
const LISTED_BYTES_MAX: usize = 16 << 10;

/// A question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Question {
    request_id: String,
    session: String,
    agent: String,
    turn: u64,
    call_id: String,
    tool: String,
    side_effects: String,
    /// What the answer is bound to: send it back.
    digest: String,
    asked_ms: u64,
    expires_ms: u64,
    /// The arguments with which it runs; null in a list if they are long.
    arguments: Value,
    /// Paths that lead elsewhere than their names say.
    links: Vec<Link>,
    /// What `always` would cover.
    always: String,
    /// Why the arguments that somebody gave may not run.
    refused: Option<String>,
    /// What the call would change, if its tool can tell; not in lists.
    changes: Option<String>,
    /// The question as it is shown, line by line; not in lists.
    sheet: Vec<SheetRow>,
}

/// A path that is a link.
#[derive(Debug, Serialize, ToSchema)]
struct Link {
    path: String,
    leads_to: String,
}

/// A labelled part of a question.
#[derive(Debug, Serialize, ToSchema)]
struct SheetRow {
    label: String,
    lines: Vec<String>,
}

impl Question {
    fn listed(asked: &Asked) -> Self {
        let request = &asked.request;
        let arguments = request.arguments();
        let is_short = arguments.to_string().len() <= LISTED_BYTES_MAX;
        let link = |link: &toolyard::LinkedPath| Link {
            path: link.path.clone(),
            leads_to: link.leads_to.to_string_lossy().into_owned(),
        };
        Self {
            request_id: request.id().to_string(),
            session: request.session().to_string(),
            agent: request.agent().to_string(),
            turn: request.turn(),
            call_id: request.call_id().to_string(),
            tool: request.tool().to_string(),
            side_effects: request.side_effects().to_string(),
            digest: request.digest().to_string(),
            asked_ms: asked.asked_ms,
            expires_ms: asked.expires_ms,
            arguments: if is_short { arguments.as_ref().clone() } else { Value::Null },
            links: request.links().iter().map(link).collect(),
            always: request.pattern().to_string(),
            refused: request.refused().map(|refused| refused.why.to_string()),
            changes: None,
            sheet: Vec::new(),
        }
    }

    pub(crate) async fn whole(asked: &Asked) -> Self {
        let request = &asked.request;
        let changes = request.changes().await;
        let sheet = Sheet::of(request, changes.as_deref());
        let row = |row: &toolyard::sheet::Row| SheetRow {
            label: row.label.as_str().to_owned(),
            lines: row.lines.clone(),
        };
        let sheet = sheet.whole().iter().map(row).collect();
        Self { arguments: request.arguments().as_ref().clone(), changes, sheet, ..Self::listed(asked) }
    }
}

/// A page of open questions.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Questions {
    confirmations: Vec<Question>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Which {
    /// Only those of this session.
    session: Option<String>,
}

impl Questions {
    /// The page that a request asks for, of the questions for which `wanted` holds (HT-12).
    fn page(app: &App, paging: &Paging, wanted: impl Fn(&Asked) -> bool) -> Result<Self, Problem> {
        let cursor = paging.cursor.as_deref().map(str::parse).transpose();
        let after: Option<RequestId> =
            cursor.map_err(|_| Problem::malformed("'cursor' is not the 'next' of a page of questions"))?;
        let open = app.front.questions().pending(app.engine.epoch(), after, PAGE + 1, wanted);
        let next = (open.len() > PAGE).then(|| open[PAGE - 1].request.id().to_string());
        Ok(Self { confirmations: open.iter().take(PAGE).map(Question::listed).collect(), next })
    }
}

/// Whether a caller may see the questions of a session.
fn sees(app: &App, caller: &Caller, session: &SessionId) -> bool {
    caller.sees_all() || app.session(caller, session.as_str()).is_ok()
}

/// List the open questions of all sessions that the token may see, oldest first.
#[utoipa::path(get, path = "/confirmations", tag = "confirmations", params(Which, Paging),
    responses((status = 200, description = "A page of them", body = Questions), Common))]
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    QueryOf(which): QueryOf<Which>,
    QueryOf(paging): QueryOf<Paging>,
) -> Result<axum::Json<Questions>, Problem> {
    caller.needs(&Scope::ALL)?;
    let of = |asked: &Asked| which.session.as_deref().is_none_or(|id| asked.request.session().as_str() == id);
    let wanted = |asked: &Asked| of(asked) && sees(&app, &caller, asked.request.session());
    Questions::page(&app, &paging, wanted).map(axum::Json)
}

/// List the open questions of a session, oldest first.
#[utoipa::path(get, path = "/sessions/{id}/confirmations", tag = "confirmations",
    params(("id" = String, Path, description = "The session", example = "demo"), Paging),
    responses((status = 200, description = "A page of them", body = Questions), Common))]
pub(super) async fn list_of_session(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(paging): QueryOf<Paging>,
) -> Result<axum::Json<Questions>, Problem> {
    let session = app.seen(&caller, &id)?;
    Questions::page(&app, &paging, |asked| *asked.request.session() == session).map(axum::Json)
}

/// Show a question, with its whole arguments and what its call would change.
#[utoipa::path(get, path = "/sessions/{id}/confirmations/{request_id}", tag = "confirmations",
    params(("id" = String, Path, description = "The session", example = "demo"), ("request_id" = String, Path, description = "The question")),
    responses((status = 200, description = "The question", body = Question), Common))]
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    PathOf((id, request)): PathOf<(String, String)>,
) -> Result<axum::Json<Question>, Problem> {
    let session = app.seen(&caller, &id)?;
    let id = request_id(&request)?;
    match app.front.questions().find(id).await.filter(|asked| *asked.request.session() == session) {
        Some(asked) => Ok(axum::Json(Question::whole(&asked).await)),
        None => {
            let settled = app.front.questions().settled(id).filter(|settled| settled.session == session);
            Err(settled.map_or_else(|| no_question(&request), |settled| over(&settled)))
        }
    }
}

fn request_id(text: &str) -> Result<RequestId, Problem> {
    text.parse().map_err(|_| no_question(text))
}

fn no_question(text: &str) -> Problem {
    Problem::not_found(format!("question '{}'", text.escape_debug()))
}

/// What an answer to a question that is settled is told.
fn over(settled: &Settled) -> Problem {
    match &settled.how {
        How::Answered(answer) => {
            let who = answer.who().unwrap_or("somebody");
            let decision = answer.decision();
            let detail = format!("'{who}' has already answered '{decision}': the first answer counts");
            Problem::new(StatusCode::CONFLICT, "already_resolved", detail)
                .with("who", who)
                .with("decision", decision.as_str())
                .with("at_ms", settled.at_ms)
        }
        How::Withdrawn => {
            Problem::new(StatusCode::GONE, "withdrawn", "the question was withdrawn: its call has ended")
        }
        How::NotTaken => again(),
        How::Expired => {
            Problem::new(StatusCode::GONE, "expired", "nobody answered in time: the call has ended")
        }
    }
}

fn again() -> Problem {
    let detail = "another answer could not be taken: answer when the question is asked again, if it is";
    Problem::new(StatusCode::CONFLICT, "asked_again", detail)
}

/// An answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    decision: Decision,
    /// That of the question, so that the answer is for what was shown.
    #[schema(min_length = 64, max_length = 64)]
    digest: String,
    /// Why; the model reads that of a no.
    reason: Option<String>,
    /// With `allow`: the arguments with which the call is to run instead.
    arguments: Option<Value>,
}

/// What an answer decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    Allow,
    Deny,
    /// This call, and all others of its pattern.
    Always,
    /// Neither this call nor any other of its pattern.
    Never,
}

/// An answer that counts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Taken {
    request_id: String,
    decision: Decision,
    who: String,
    at_ms: u64,
}

/// Answer a question: the first answer counts (PO-4).
#[utoipa::path(post, path = "/sessions/{id}/turns/{turn_id}/confirmations/{request_id}", tag = "confirmations",
    request_body = Given,
    params(("id" = String, Path, description = "The session", example = "demo"), ("turn_id" = u64, Path, description = "The turn", example = 1),
        ("request_id" = String, Path, description = "The question")),
    responses((status = 200, description = "The answer counts", body = Taken),
        (status = 412, description = "What would run now is something else: `question` has it", body = Object, content_type = "application/problem+json"),
        Common))]
pub(super) async fn answer(
    State(app): State<App>,
    caller: Caller,
    PathOf((session, turn, request)): PathOf<(String, u64, String)>,
    Json(given): Json<Given>,
) -> Result<axum::Json<Taken>, Problem> {
    caller.needs(&[Scope::Approve])?;
    let here = |of: &SessionId, in_turn: u64| of.as_str() == session && in_turn == turn;
    let refuse = || refuse_own(&app, &caller, &session);
    settle(&app, &request, here, refuse, given, caller.0.name()).await.map(axum::Json)
}

/// Brings an answer to the question of this name, if that is one of those that `here` holds for and `refuse` lets it.
///
/// # Cancel safety
/// Dropping the future does not take back an answer that is given.
pub(crate) async fn settle(
    app: &App,
    request: &str,
    here: impl Fn(&SessionId, u64) -> bool,
    refuse: impl FnOnce() -> Result<(), Problem>,
    given: Given,
    who: &str,
) -> Result<Taken, Problem> {
    let id = request_id(request)?;
    let questions = app.front.questions();
    let open = questions.find(id).await.filter(|asked| here(asked.request.session(), asked.request.turn()));
    if open.is_none() {
        let settled = questions.settled(id).filter(|settled| here(&settled.session, settled.turn));
        return Err(settled.map_or_else(|| no_question(request), |settled| over(&settled)));
    }
    refuse()?;
    let digest: CallDigest = serde_json::from_value(Value::from(given.digest.as_str()))
        .map_err(|_| Problem::invalid("/digest", "a digest has 64 hexadecimal digits"))?;
    let answer = answer_of(&given, who)?;
    // In a task of its own: an answer that is given counts, whether or not its giver stays (HT-2).
    let front = app.front.clone();
    let giving = tokio::spawn(async move { front.questions().answer(id, &digest, answer).await });
    match giving.await.map_err(|_| Problem::draining())? {
        Ok(()) => Ok(Taken {
            request_id: request.to_owned(),
            decision: given.decision,
            who: who.to_owned(),
            at_ms: wall::now_ms(),
        }),
        Err(error) => Err(not_taken(app, id, request, error).await),
    }
}

/// Nobody approves the calls that he has made, unless his token says so (HT-6).
fn refuse_own(app: &App, caller: &Caller, session: &str) -> Result<(), Problem> {
    let own = app.book.find(session).is_some_and(|served| caller.is(served.owner()));
    if own && !caller.0.self_approve {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "self_approval",
            "nobody approves calls of his own session",
        ));
    }
    Ok(())
}

fn answer_of(given: &Given, who: &str) -> Result<Answer, Problem> {
    let answer = match (given.decision, &given.arguments) {
        (Decision::Allow, None) => Answer::allow(who),
        (Decision::Allow, Some(arguments)) => Answer::edit(who, arguments.clone()),
        (_, Some(_)) => {
            return Err(Problem::invalid(
                "/arguments",
                "changed arguments hold for one call alone: send them with allow",
            ));
        }
        (Decision::Deny, None) => Answer::deny(who),
        (Decision::Always, None) => Answer::always(who),
        (Decision::Never, None) => Answer::never(who),
    };
    Ok(given.reason.iter().fold(answer, Answer::because))
}

async fn not_taken(app: &App, id: RequestId, request: &str, error: AnswerError) -> Problem {
    let questions = app.front.questions();
    match error {
        AnswerError::Answered(_) | AnswerError::Withdrawn(_) => {
            questions.settled(id).map_or_else(|| no_question(request), |settled| over(&settled))
        }
        AnswerError::Digest(_) => {
            let problem = Problem::new(
                StatusCode::PRECONDITION_FAILED,
                "digest_mismatch",
                "the answer is for something else than what would run now: look at the question again",
            );
            match questions.find(id).await {
                Some(asked) => {
                    let question = Question::whole(&asked).await;
                    problem.with("question", serde_json::to_value(question).unwrap_or_default())
                }
                None => problem,
            }
        }
        AnswerError::Refused(_, why) => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "edit_refused", why.why)
                .with("kind", why.kind.code())
        }
        AnswerError::Again(_) => again(),
        _ => no_question(request),
    }
}
