//! Turns of an earlier life that somebody asks for: by their numbers, and by the keys of their requests.

use super::{taken_up::TakenUp, unreadable};
use crate::{
    book::{Find, Served, ServedTurn},
    problem::Problem,
};
use axum::http::StatusCode;
use std::{sync::Arc, time::Duration};
use tokio::task::spawn_blocking;
use toolyard::{Call, ResumeError, Session};

/// How long a turn has to be there again. One that has ended takes no time.
const RECALL_WAIT: Duration = Duration::from_secs(1);

/// A turn that is not here, from its records.
///
/// # Errors
/// A [`Problem`]: there is none of this number, or it was here and is kept no longer.
pub(crate) async fn recall(served: &Arc<Served>, turn: u64) -> Result<Arc<ServedTurn>, Problem> {
    let root = served.agent(None)?;
    let taken_up = match TakenUp::of(served, &root, turn).await {
        Err(ResumeError::OtherAgent { agent, .. }) => {
            TakenUp::of(served, &served.agent(Some(agent.as_str()))?, turn).await
        }
        other => other,
    };
    match taken_up {
        Ok(taken_up) => Ok(taken_up.goes_on_after(RECALL_WAIT).await),
        Err(ResumeError::InThisLife { .. }) => match served.turns.find(turn) {
            Find::There(turn) => Ok(turn), // somebody else has recalled it meanwhile
            Find::Gone | Find::Never => Err(Problem::gone(format!("turn {turn} is kept no longer"))),
        },
        Err(error @ (ResumeError::Unreadable { .. } | ResumeError::Unrecorded { .. })) => {
            Err(unreadable(&error))
        }
        Err(_) => Err(Problem::not_found(format!("turn {turn} in session '{}'", served.id()))),
    }
}

/// The turn that a request with this key has made, if it has come before.
///
/// # Errors
/// A [`Problem`]: the key was used for other calls, or what it has made cannot be read.
pub(crate) async fn repeated(
    served: &Arc<Served>,
    agent: &Session,
    request: String,
    calls: &[Call],
) -> Result<Option<Arc<ServedTurn>>, Problem> {
    let asked = agent.clone();
    let past = spawn_blocking(move || asked.past_request(&request)).await;
    let past = past.map_err(|_| Problem::draining())?.map_err(|error| unreadable(&error))?;
    let Some(past) = past else { return Ok(None) };
    if past.agent != *agent.agent() || !are_equal(&past.calls, calls) {
        let detail = "this Idempotency-Key was used for another request: use a new one";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", detail));
    }
    match served.turns.find(past.turn) {
        Find::There(turn) => Ok(Some(turn)),
        Find::Gone | Find::Never => recall(served, past.turn).await.map(Some),
    }
}

/// Whether these are the calls that were sent then.
fn are_equal(past: &[Call], now: &[Call]) -> bool {
    let is_equal = |(past, now): (&Call, &Call)| {
        let keys = (&past.idempotency_key, &now.idempotency_key);
        (&past.id, &past.name) == (&now.id, &now.name)
            && keys.0 == keys.1
            && past.arguments.to_value() == now.arguments.to_value()
    };
    past.len() == now.len() && past.iter().zip(now).all(is_equal)
}
