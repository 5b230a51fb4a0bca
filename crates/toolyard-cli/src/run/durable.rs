//! A response that is run with a journal: once, however often it is given (JR-8).
//!
//! ```text
//!   the session has it ─► as it was recorded, and on from there
//!   the session has another one that is open ─► refused: finish that first
//!   otherwise ─► run, under a key made of its text
//! ```

use super::{
    results,
    runner::{BatchResult, Runner},
};
use crate::{cli::RunArgs, error::Error, exit::Exit};
use serde_json::Value;
use toolyard::{Call, IdempotencyKey, OpenTurn, ResumeError, ResumedTurn, Session};
use toolyard_wire::{Format, Message, Results};

/// Runs the calls of a response with this text in the session of the arguments.
pub(super) async fn run(
    runner: &Runner,
    args: &RunArgs,
    text: &str,
    calls: &[Call],
) -> Result<BatchResult, Error> {
    let Some(name) = &args.session.session else {
        let session = runner.unnamed_session();
        let result = runner.run_request(&session, calls, Some(&key_of(text))).await;
        let is_open =
            result.outcomes.iter().any(|it| it.error().is_some_and(|error| error.suspended.is_some()));
        if is_open {
            runner.notify(&format!("to go on with it: --session {} --resume", session.id()));
        }
        return Ok(result);
    };
    let (session, request) = (runner.session(name), key_of(text));
    let past = session.past_request(&request).map_err(|error| unusable(&error))?;
    if let Some(turn) = past.map(|past| past.turn) {
        runner
            .notify(&format!("turn {turn} of session {name} is this response: it goes on from the journal"));
        let resumed = taken_up(&session, turn).await?;
        return Ok(runner.finish_turn(&session, resumed, calls).await);
    }
    if let Some(open) = left_open(runner, &session)?.first() {
        return Err(Error::Usage(format!(
            "session {name} has turn {} open, which is another response: finish it first with --session {name} --resume",
            open.turn
        )));
    }
    Ok(runner.run_request(&session, calls, Some(&request)).await)
}

/// Goes on with what the session of the arguments has left open.
pub(super) async fn resume(runner: &Runner, args: &RunArgs) -> Result<Exit, Error> {
    let name = args.session.session.as_deref().unwrap_or_default();
    let session = runner.session(name);
    let open = left_open(runner, &session)?;
    if open.is_empty() {
        return Err(Error::Usage(format!(
            "session {name} has left nothing open: see what is with 'toolyard journal ls'"
        )));
    }
    for OpenTurn { turn, .. } in open {
        let resumed = taken_up(&session, turn).await?;
        let calls: Vec<Call> = resumed.calls().cloned().collect();
        let result = runner.finish_turn(&session, resumed, &calls).await;
        let to = args.to.map_or(Format::Neutral, |to| to.format());
        let message = Message::new(to, calls);
        runner.print(|| results::print_pretty(&Results::new(&message, &result.outcomes, to)))?;
        runner.record(None, &result.outcomes, result.timeline);
    }
    Ok(Exit::Ok)
}

/// The turns of its root agent that a session has left open.
fn left_open(runner: &Runner, session: &Session) -> Result<Vec<OpenTurn>, Error> {
    let open = runner.engine.open_turns().map_err(|error| unusable(&error))?;
    let is_own = |turn: &OpenTurn| turn.session == *session.id() && turn.agent == *session.agent();
    Ok(open.into_iter().filter(is_own).collect())
}

async fn taken_up(session: &Session, turn: u64) -> Result<ResumedTurn, Error> {
    session.resume(turn).await.map_err(|error: ResumeError| unusable(&error))
}

fn unusable(error: &dyn std::error::Error) -> Error {
    Error::Usage(format!("--journal: {}", crate::error::chain(error)))
}

/// The key by which the journal knows a response.
fn key_of(text: &str) -> String {
    IdempotencyKey::derive("", "response", &Value::from(text)).as_str().to_owned()
}
