//! What a session's record says of who has opened it, and with what.

use super::unreadable;
use crate::{access::Token, app::App, problem::Problem, routes::sessions::Open};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use toolyard::SessionId;

/// Who has opened a session, and what was asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Description {
    /// The name of the token. Those of other programs that open sessions have no such member.
    pub(super) served_for: String,
    pub(super) open: Open,
    /// When it was opened first, in milliseconds since 1970.
    #[serde(default)]
    pub(super) opened_ms: Option<u64>,
}

/// Reads one.
///
/// # Errors
/// A [`Problem`]: it was written by another program, or another version of this one.
pub(super) fn read(text: &str) -> Result<Description, Problem> {
    serde_json::from_str(text).map_err(|error| {
        let detail = format!("what it was opened with cannot be read: {error}");
        Problem::new(StatusCode::CONFLICT, "unknown_description", detail)
    })
}

impl Description {
    /// As the session's record has it.
    pub(crate) fn text(owner: &Token, open: &Open, opened_ms: u64) -> String {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            served_for: &'a str,
            open: &'a Open,
            opened_ms: u64,
        }
        let described = Borrowed { served_for: owner.name(), open, opened_ms };
        serde_json::to_string(&described).expect("what was read as JSON can be written as JSON")
    }
}

/// Passes if a token may open a session of this name: its results under idempotency keys are those of whoever had the name
/// before. Returns whether somebody had it.
///
/// # Errors
/// A [`Problem`]: it is somebody else's, or one that the engine gives.
pub(crate) fn may_open(app: &App, token: &Token, id: &SessionId) -> Result<bool, Problem> {
    let past = app.engine.past_session(id).map_err(|error| unreadable(&error))?;
    let Some(past) = past else {
        return if is_given(id.as_str()) { Err(somebodys(id)) } else { Ok(false) };
    };
    let owner = past.description.as_deref().and_then(|text| read(text).ok()).map(|it| it.served_for);
    match owner.as_deref() == Some(token.name()) {
        true => Ok(true),
        false => Err(somebodys(id)),
    }
}

fn somebodys(id: &SessionId) -> Problem {
    let detail = format!("'{id}' is the name of a session that somebody else had: use another one");
    Problem::new(StatusCode::CONFLICT, "session_open", detail)
}

/// Whether it is a name that an engine gives to a session that nobody has named: in this life or another it may be given.
fn is_given(id: &str) -> bool {
    let rest = id.strip_prefix("session-").and_then(|rest| rest.split_once('-'));
    let is_epoch = |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    rest.is_some_and(|(epoch, number)| is_epoch(epoch) && number.parse::<u64>().is_ok())
}
