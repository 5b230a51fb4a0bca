//! Turns of an earlier life that are taken up, or that somebody asks for: by their numbers, and by the keys of their
//! requests.

use super::{request_of, taken_up::TakenUp, unreadable};
use crate::{
    app::App,
    book::{Find, Served, ServedTurn},
    problem::Problem,
};
use axum::http::StatusCode;
use std::{sync::Arc, time::Duration};
use tokio::task::spawn_blocking;
use toolyard::{Call, PastRequest, RecordError, ResumeError, Session};
use toolyard_wire::Format;

/// How long a turn has to be there again. One that has ended takes no time.
const RECALL_WAIT: Duration = Duration::from_secs(1);

/// What becomes of a turn that was left open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It goes on.
    GoesOn,
    /// It stays as it is: whoever asks only looks.
    Stays,
    /// The same; if it is about to go on by itself, it, or this one of its calls, is cancelled before it does.
    IsCancelled { call: Option<u32> },
}

/// A turn that was not here.
enum Recalled {
    /// It is by now.
    Here(Arc<ServedTurn>),
    TakenUp(TakenUp),
}

/// A turn that is not here, from its records.
///
/// # Errors
/// A [`Problem`]: there is none of this number, it was here and is kept no longer, or it was left open and stays so.
///
/// # Cancel safety
/// Dropping the future does not stop it: a turn that is being taken up goes on.
pub(crate) async fn recall(
    app: &App,
    served: &Arc<Served>,
    turn: u64,
    left: Left,
) -> Result<Arc<ServedTurn>, Problem> {
    let (app, served) = (app.clone(), served.clone());
    let recalling = tokio::spawn(async move {
        match recalled(&app, &served, turn, left).await? {
            Recalled::Here(turn) => Ok(turn),
            Recalled::TakenUp(taken_up) => {
                if let Left::IsCancelled { call } = left {
                    taken_up.cancel(call);
                }
                // The next one is taken up meanwhile.
                Ok(taken_up.goes_on(RECALL_WAIT).await)
            }
        }
    });
    recalling.await.map_err(|_| Problem::draining())?
}

/// Takes up a turn that was left open. It goes on by itself.
///
/// # Errors
/// As for [`recall`].
pub(super) async fn take_up(app: &App, served: &Arc<Served>, turn: u64) -> Result<(), Problem> {
    recalled(app, served, turn, Left::GoesOn).await.map(drop)
}

async fn recalled(app: &App, served: &Arc<Served>, turn: u64, left: Left) -> Result<Recalled, Problem> {
    // One after the other: whoever comes second finds it.
    let _alone = served.recalling.lock().await;
    if let Find::There(turn) = served.turns.find(turn) {
        return Ok(Recalled::Here(turn));
    }
    // Who asks for one that is about to be taken up does so himself.
    let stays = left != Left::GoesOn && !served.goes_on_by_itself(turn);
    if stays && was_left_open(app, served, turn).await? {
        let detail =
            format!("turn {turn} was left open by an earlier life of the server, and does not go on");
        return Err(Problem::new(StatusCode::CONFLICT, "left_open", detail));
    }
    let root = served.agent(None)?;
    let taken_up = match TakenUp::of(served, &root, turn).await {
        Err(ResumeError::OtherAgent { agent, .. }) => {
            TakenUp::of(served, &served.agent(Some(agent.as_str()))?, turn).await
        }
        other => other,
    };
    match taken_up {
        Ok(taken_up) => Ok(Recalled::TakenUp(taken_up)),
        Err(ResumeError::InThisLife { .. }) => {
            Err(Problem::gone(format!("turn {turn} has ended, and its results are kept no longer")))
        }
        Err(error @ (ResumeError::Unreadable { .. } | ResumeError::Unrecorded { .. })) => {
            Err(unreadable(&error))
        }
        Err(_) => Err(Problem::not_found(format!("turn {turn} in session '{}'", served.id()))),
    }
}

async fn was_left_open(app: &App, served: &Served, turn: u64) -> Result<bool, Problem> {
    let engine = app.engine.clone();
    let open = read(move || engine.open_turns()).await?;
    Ok(open.iter().any(|open| open.session == *served.id() && open.turn == turn))
}

/// Reads what was recorded, on a thread that may wait.
async fn read<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, RecordError> + Send + 'static,
) -> Result<T, Problem> {
    let found = spawn_blocking(read).await.map_err(|_| Problem::draining())?;
    found.map_err(|error| unreadable(&error))
}

/// The turn that a request with this key has made, if it has come before.
///
/// # Errors
/// A [`Problem`]: the key was used for other calls, or what it has made cannot be read.
pub(crate) async fn repeated(
    app: &App,
    served: &Arc<Served>,
    agent: &Session,
    (format, key): (Format, &str),
    calls: &[Call],
) -> Result<Option<Arc<ServedTurn>>, Problem> {
    let (asked, key) = (agent.clone(), key.to_owned());
    let past = read(move || {
        let find = |of: Format| Ok(asked.past_request(&request_of(of, Some(&key)))?.map(|past| (of, past)));
        // Another format is another request under the same key.
        std::iter::once(format).chain(Format::ALL).find_map(|of| find(of).transpose()).transpose()
    })
    .await?;
    let Some((of, past)) = past else { return Ok(None) };
    if of != format {
        return Err(mismatch());
    }
    made_by(app, served, agent, past, calls).await.map(Some)
}

/// The turn that a request for a single call has made, if it has come before.
///
/// # Errors
/// As for [`repeated`].
pub(crate) async fn repeated_call(
    app: &App,
    served: &Arc<Served>,
    agent: &Session,
    request: String,
    call: &Call,
) -> Result<Option<Arc<ServedTurn>>, Problem> {
    let asked = agent.clone();
    match read(move || asked.past_request(&request)).await? {
        None => Ok(None),
        Some(past) => made_by(app, served, agent, past, std::slice::from_ref(call)).await.map(Some),
    }
}

async fn made_by(
    app: &App,
    served: &Arc<Served>,
    agent: &Session,
    past: PastRequest,
    calls: &[Call],
) -> Result<Arc<ServedTurn>, Problem> {
    if past.agent != *agent.agent() || !are_equal(&past.calls, calls) {
        return Err(mismatch());
    }
    match served.turns.find(past.turn) {
        Find::There(turn) => Ok(turn),
        Find::Gone | Find::Never => recall(app, served, past.turn, Left::GoesOn).await,
    }
}

fn mismatch() -> Problem {
    let detail = "this Idempotency-Key was used for another request: use a new one";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch", detail)
}

/// Whether these are the calls that were sent then.
fn are_equal(past: &[Call], now: &[Call]) -> bool {
    let is_equal = |(past, now): (&Call, &Call)| {
        (&past.id, &past.name, &past.idempotency_key) == (&now.id, &now.name, &now.idempotency_key)
            && past.arguments.to_value() == now.arguments.to_value()
    };
    past.len() == now.len() && past.iter().zip(now).all(is_equal)
}
