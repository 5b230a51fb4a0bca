//! A turn as it is shown, and its results in a provider's format.

use crate::{
    app::App,
    book::{Ended, Phase, Served, ServedTurn},
    problem::Problem,
};
use axum::http::HeaderName;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolyard::{AgentPath, Outcome, SessionId};
use toolyard_wire::{Format, Results, outcome_to_json};
use utoipa::{IntoParams, ToSchema};

/// How long a request may wait for results.
const WAIT_MAX: Duration = Duration::from_secs(300);

/// A turn.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Turn)]
pub(super) struct Shown {
    #[schema(value_type = String)]
    session: SessionId,
    turn: u64,
    #[schema(value_type = String)]
    agent: AgentPath,
    state: State,
    cancelled: bool,
    /// The format of its response.
    format: &'static str,
    /// How many calls it has, as far as they are known.
    calls: usize,
    /// How many of them have ended.
    finished: usize,
    started_ms: u64,
    ended_ms: Option<u64>,
    /// `false` if a crash before its end may lose it: with a journal, until it is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recorded: Option<bool>,
    /// With `?partial=true`: each call's result in the neutral format, or null.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcomes: Option<Vec<Value>>,
    /// Of a turn that has ended: what goes into the next request to the model, in the format asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    results: Option<ShownResults>,
}

/// Results that are put together while they are written.
#[derive(Debug)]
struct ShownResults {
    turn: Arc<ServedTurn>,
    to: Option<Format>,
}

impl Serialize for ShownResults {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some(Ended { message, outcomes, .. }) = self.turn.ended() else { return to.serialize_none() };
        Results::new(message, outcomes, self.to.unwrap_or(message.format())).serialize(to)
    }
}

/// How far a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TurnState)]
pub(super) enum State {
    /// The model is still writing it.
    Streaming,
    /// Its stream broke off: `PUT` its whole response, and it goes on.
    Broken,
    /// Some of its calls have not ended.
    Running,
    /// Some of its calls wait for an answer.
    Waiting,
    /// The server is shutting down: ask again when it is there again, and it goes on (SM-10).
    Suspended,
    /// Every call has its result.
    Ended,
}

/// What is shown of a turn.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct As {
    /// The format of the results: `neutral`, `openai-chat`, `openai-responses`, `anthropic` or `gemini`; that of the
    /// response without one.
    pub(super) to: Option<String>,
    /// Shows the results so far too.
    pub(super) partial: Option<bool>,
    /// Waits for the results, as many seconds as that and at most 300.
    pub(super) wait: Option<u32>,
}

impl As {
    /// The format asked for.
    pub(super) fn format(&self) -> Result<Option<Format>, Problem> {
        self.to.as_deref().map(str::parse).transpose().map_err(Problem::malformed)
    }

    pub(super) fn waits(&self) -> Option<Duration> {
        self.wait.map(|seconds| Duration::from_secs(seconds.into()).min(WAIT_MAX))
    }
}

/// Waits for the results of a turn, for so long.
pub(super) async fn wait(turn: &ServedTurn, within: Duration) {
    // It is shown as it is then.
    let _ = timeout(within, turn.until_over()).await;
}

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// How long a `Prefer: wait=…` waits (RFC 7240).
pub(super) fn preferred(headers: &axum::http::HeaderMap) -> Option<Duration> {
    let texts = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    let mut each =
        texts.flat_map(|text| text.split([',', ';'])).filter_map(|part| part.trim().strip_prefix("wait="));
    let seconds: u64 = each.next()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds).min(WAIT_MAX))
}

pub(super) fn state(app: &App, served: &Served, turn: &ServedTurn) -> State {
    state_of(app, served, turn, turn.phase())
}

fn state_of(app: &App, served: &Served, turn: &ServedTurn, phase: Phase) -> State {
    match phase {
        Phase::Ended => State::Ended,
        Phase::Suspended => State::Suspended,
        _ if app.front.questions().waits(served.id(), turn.number) => State::Waiting,
        Phase::Streaming => State::Streaming,
        Phase::Broken => State::Broken,
        Phase::Running => State::Running,
    }
}

impl Shown {
    /// With its results, if it has ended, and those so far if that is wanted.
    pub(super) fn of(
        app: &App,
        served: &Served,
        turn: &Arc<ServedTurn>,
        to: Option<Format>,
        partial: bool,
    ) -> Self {
        let outcome = |outcome: &Option<Outcome>| outcome.as_ref().map_or(Value::Null, outcome_to_json);
        let outcomes = partial.then(|| turn.outcomes().iter().map(outcome).collect());
        let brief = Self::brief(app, served, turn);
        let results = brief.has_ended().then(|| ShownResults { turn: turn.clone(), to });
        Self { outcomes, results, ..brief }
    }

    /// Without results, as lists show it: how far it was at one moment.
    pub(super) fn brief(app: &App, served: &Served, turn: &ServedTurn) -> Self {
        let seen = turn.seen();
        let finished = match seen.ended {
            Some(ended) => ended.outcomes.len(),
            None => turn.outcomes().iter().flatten().count(),
        };
        Self {
            session: served.id().clone(),
            turn: turn.number,
            agent: turn.agent.clone(),
            state: state_of(app, served, turn, seen.phase),
            cancelled: seen.is_cancelled,
            format: seen.format.as_str(),
            calls: seen.calls,
            finished,
            started_ms: turn.started_ms,
            ended_ms: seen.ended.map(|ended| ended.ended_ms),
            recorded: None,
            outcomes: None,
            results: None,
        }
    }

    /// Whether it is shown as one that has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }
}
