//! A turn whose response is sent whole: from its request to its answer.

use super::{
    super::{goes_on::GoesOn, results::preferred, streamed},
    Asked, answer, find, is_stream, read, recorded,
};
use crate::{
    access::{Caller, Scope},
    app::App,
    book::{Phase, Room, Served, ServedTurn},
    http::key_of,
    problem::Problem,
};
use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, request::Parts},
    response::Response,
};
use std::{sync::Arc, time::Duration};
use tokio::time::timeout;
use toolyard::{Batch, Outcome, Session};
use toolyard_wire::{Format, Message};

/// A request that starts a turn, once its head is read.
pub(super) enum Begun {
    Streamed(Response),
    /// With a body that has yet to be read.
    Whole(Whole, Body),
}

/// The turn that has to end before it.
pub(super) enum After {
    Here(Arc<ServedTurn>),
    /// It may be one of an earlier life.
    Earlier(u64),
}

/// A turn whose response is sent whole.
pub(super) struct Whole {
    pub(super) served: Arc<Served>,
    pub(super) agent: Session,
    /// `None` for one that may have come before, and needs none then.
    pub(super) room: Option<Room>,
    pub(super) after: Option<After>,
    pub(super) from: Option<Format>,
    pub(super) to: Option<Format>,
    pub(super) cancel_on_disconnect: bool,
    /// What `Prefer` says.
    pub(super) preferred: Option<Duration>,
    pub(super) waits: Option<Duration>,
    /// Its key, where it is known by its records too.
    pub(super) key: Option<String>,
}

pub(super) fn begin(
    app: &App,
    caller: &Caller,
    id: &str,
    asked: Asked,
    request: Request,
) -> Result<Begun, Problem> {
    let (of, start, shown) = asked.parts();
    caller.needs(&[Scope::Call])?;
    app.starts()?;
    let served = app.own_session(caller, id)?;
    let agent = served.agent(of.agent.as_deref())?;
    let room = served.turns.room();
    let (from, to) = (start.format()?, shown.format()?);
    let (Parts { headers, .. }, body) = request.into_parts();
    let is_past = served.opened().is_past;
    let key = if app.engine.is_outlived() { key_of(&headers) } else { None };
    if room.is_none() && !(is_past && key.is_some()) {
        return Err(too_many_open());
    }
    let after = match start.after {
        None => None,
        Some(number) => match find(&served, number) {
            Err(_) if is_past => Some(After::Earlier(number)),
            found => Some(After::Here(found?)),
        },
    };
    crate::http::expect_type(&headers, &["application/json", "text/event-stream"])?;
    if is_stream(&headers) {
        start.alone("a streamed response")?;
        let room = room.ok_or_else(too_many_open)?;
        let gone = caller.0.gone.clone();
        return Ok(Begun::Streamed(streamed::start(
            app.clone(),
            (served, room),
            agent,
            (body, gone),
            from,
            to,
        )));
    }
    let cancel_on_disconnect = start.cancel_on_disconnect.unwrap_or(false);
    let (preferred, waits) = (preferred(&headers), shown.waits());
    let whole = Whole { served, agent, room, after, from, to, cancel_on_disconnect, preferred, waits, key };
    Ok(Begun::Whole(whole, body))
}

pub(super) fn too_many_open() -> Problem {
    Problem::too_many("this session has too many open turns: wait for some to end")
}

impl Whole {
    /// How long its results are waited for.
    pub(super) fn within(&self) -> Option<Duration> {
        self.preferred.or(self.waits)
    }

    /// Reads it, runs its calls, and answers as it is then.
    #[expect(
        clippy::manual_async_fn,
        reason = "what it captures has one place; arguments of an async fn have two, and are dropped at its end"
    )]
    pub(super) fn answer(
        self,
        app: App,
        body: Body,
    ) -> impl Future<Output = Result<Response, Problem>> + Send {
        async move {
            // The body lies in the buffer of the connection, which is free again before the calls run.
            let message = read(&app.bodies.read(body).await?, self.from, &self.agent)?;
            if app.engine.is_outlived() {
                return Box::pin(recorded::answer_of(self, app, message)).await;
            }
            let within = self.within();
            let room = self.room.ok_or_else(too_many_open)?;
            let after = self.after.and_then(After::here);
            let (turn, running) = run(&self.served, room, &self.agent, (message, None), after);
            let guard = self.cancel_on_disconnect.then(|| CancelOnDrop(Some(turn.clone())));
            match within {
                // It is shown as it is then.
                Some(within) => drop(timeout(within, running).await),
                None => drop(running),
            }
            guard.into_iter().for_each(CancelOnDrop::disarm);
            let response = answer(&app, &self.served, &turn, self.to, None);
            Ok(preference_applied(response, self.preferred.is_some()))
        }
    }
}

impl After {
    fn here(self) -> Option<Arc<ServedTurn>> {
        match self {
            Self::Here(turn) => Some(turn),
            Self::Earlier(_) => None,
        }
    }
}

/// Says that `Prefer` was heeded, if it was there.
pub(super) fn preference_applied(mut response: Response, is_preferred: bool) -> Response {
    if is_preferred {
        response.headers_mut().insert("preference-applied", HeaderValue::from_static("wait"));
    }
    response
}

/// A turn, and what runs it, which goes on whether or not anybody waits for it (HT-2).
pub(super) fn run(
    served: &Arc<Served>,
    room: Room,
    agent: &Session,
    (message, request): (Message, Option<String>),
    after: Option<Arc<ServedTurn>>,
) -> (Arc<ServedTurn>, GoesOn) {
    let engine_turn = Arc::new(agent.turn().without_resend());
    let path = agent.agent().clone();
    let (format, calls) = (message.format(), message.calls().len());
    let turn = Arc::new(ServedTurn::new(engine_turn.clone(), path, Phase::Running, format, calls));
    served.turns.add(room, turn.clone());
    let (running, served) = (turn.clone(), served.clone());
    let running = GoesOn::new(async move {
        if let Some(after) = after {
            running.until_its_turn(&after).await;
            // What it waited for goes on in the next life.
            if after.phase() == Phase::Suspended {
                return running.suspend();
            }
        }
        let outcomes = engine_turn.dispatch(batch_of(&message, request)).await;
        drop(engine_turn);
        finish_or_suspend(&served, &running, message, outcomes);
    });
    (turn, running)
}

/// The calls of a response, with the key under which it is known by its records, if there are any.
pub(crate) fn batch_of(message: &Message, request: Option<String>) -> Batch {
    match request {
        Some(request) => message.batch().of_request(request),
        None => message.batch(),
    }
}

/// Notes the results of a turn, unless some of its calls go on in the next life of the server (SM-10).
pub(crate) fn finish_or_suspend(
    served: &Served,
    turn: &ServedTurn,
    message: Message,
    outcomes: Vec<Outcome>,
) {
    let is_suspended = |outcome: &Outcome| outcome.error().is_some_and(|it| it.suspended.is_some());
    match outcomes.iter().any(is_suspended) {
        true => turn.suspend(),
        false => finish(served, turn, message, outcomes),
    }
}

/// Notes the results of a turn.
pub(crate) fn finish(served: &Served, turn: &ServedTurn, message: Message, outcomes: Vec<Outcome>) {
    turn.end(message, outcomes, served.touch());
    served.turns.ended(turn);
}

/// Cancels a turn that nobody waits for any more.
pub(super) struct CancelOnDrop(pub(super) Option<Arc<ServedTurn>>);

impl CancelOnDrop {
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(turn) = self.0.take() {
            turn.cancel();
        }
    }
}
