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
}

impl Description {
    pub(super) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// As the session's record has it.
    pub(crate) fn text(owner: &Token, open: &Open) -> String {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            served_for: &'a str,
            open: &'a Open,
        }
        let described = Borrowed { served_for: owner.name(), open };
        serde_json::to_string(&described).expect("what was read as JSON can be written as JSON")
    }
}

/// Passes if a token may open a session of this name: its results under idempotency keys are those of whoever had the name
/// before. Returns whether somebody had it.
pub(crate) fn may_open(app: &App, token: &Token, id: &SessionId) -> Result<bool, Problem> {
    let past = app.engine.past_session(id).map_err(|error| unreadable(&error))?;
    let Some(past) = past else { return Ok(false) };
    let owner = past.description.as_deref().and_then(Description::read).map(|it| it.served_for);
    match owner.as_deref() == Some(token.name()) {
        true => Ok(true),
        false => {
            let detail = format!("'{id}' is the name of a session that somebody else had: use another one");
            Err(Problem::new(StatusCode::CONFLICT, "session_open", detail))
        }
    }
}
