//! `/events` and `/sessions/{id}/events`: server-sent events that are resumed where they broke off (SM-9).

use super::document::Common;
use crate::{
    access::{Caller, Scope},
    app::App,
    events::{Read, Reader, Source},
    http::{PathOf, Place, QueryOf},
    problem::Problem,
};
use axum::{
    extract::State,
    http::HeaderMap,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use serde_json::json;
use std::{convert::Infallible, time::Duration};
use tokio_util::sync::CancellationToken;
use toolyard::event::{Cursor, Epoch, EventKind};
use utoipa::IntoParams;

/// How often a silent stream says that it is there.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// Why a stream ends.
pub(super) const SHUTTING_DOWN: &str = "shutting_down";
pub(super) const TOKEN_REMOVED: &str = "token_removed";

/// Which events are read.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub(super) struct Which {
    /// Only those after this cursor, `<epoch>.<position>`, the id of an event; `0` for all that are kept. Without it
    /// only new ones.
    pub(super) after: Option<String>,
    /// Only these kinds, with commas between them.
    pub(super) kinds: Option<String>,
}

/// From where a reader reads.
pub(super) enum From {
    Position(u64),
    /// Its cursor is of another life of the engine.
    Anew,
}

/// Reads a cursor.
pub(super) fn from(app: &App, after: Option<&str>) -> Result<From, Problem> {
    match after {
        None => Ok(From::Position(app.front.history().newest())),
        Some("0") => Ok(From::Position(0)),
        Some(text) => {
            let cursor: Cursor = text.parse().map_err(Problem::malformed)?;
            let is_own = cursor.epoch == app.engine.epoch();
            Ok(if is_own { From::Position(cursor.position) } else { From::Anew })
        }
    }
}

/// The kinds that are named. One that there is not would never come.
pub(super) fn kinds(named: Option<&str>) -> Result<Vec<String>, Problem> {
    let named = named.unwrap_or_default().split(',').map(str::trim);
    let known = |kind: &str| match EventKind::NAMES.contains(&kind) {
        true => Ok(kind.to_owned()),
        false => {
            let (kind, all) = (kind.escape_debug(), EventKind::NAMES.join(", "));
            Err(Problem::malformed(format!("there are no events '{kind}': there are {all}")))
        }
    };
    named.filter(|kind| !kind.is_empty()).map(known).collect()
}

/// Follow the events of all sessions: `id` is `<epoch>.<position>`, `data` an event. An event `reset` says that some are
/// kept no longer, and from where it goes on; `end` is the last one.
#[utoipa::path(get, path = "/events", tag = "events", params(Which,
    ("Last-Event-ID" = Option<String>, Header, description = "As `after`, by which clients of server-sent events resume")),
    responses((status = 200, description = "The events", body = Object, content_type = "text/event-stream"), Common))]
pub(super) async fn all(
    State(app): State<App>,
    caller: Caller,
    QueryOf(which): QueryOf<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.needs(&[Scope::Observe, Scope::Operate, Scope::Approve])?;
    follow(&app, &caller, Source::All, &which, &headers)
}

/// Follow the events of a session.
#[utoipa::path(get, path = "/sessions/{id}/events", tag = "events", params(
    ("id" = String, Path, description = "The session", example = "demo"), Which,
    ("Last-Event-ID" = Option<String>, Header, description = "As `after`, by which clients of server-sent events resume")),
    responses((status = 200, description = "The events", body = Object, content_type = "text/event-stream"), Common))]
pub(super) async fn of_session(
    State(app): State<App>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(which): QueryOf<Which>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session = app.seen(&caller, &id)?;
    follow(&app, &caller, Source::Session(session), &which, &headers)
}

fn follow(
    app: &App,
    caller: &Caller,
    source: Source,
    which: &Which,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").map(|value| value.to_str().unwrap_or_default());
    let from = from(app, last.or(which.after.as_deref()))?;
    let kinds = kinds(which.kinds.as_deref())?;
    let place = app.streams.open(&caller.0)?;
    let gone = caller.0.gone.clone();
    let following = stream_of(app, (place, gone), source, from, kinds);
    Ok(Sse::new(following).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response())
}

/// The stream while it is open.
struct Following {
    reader: Reader,
    epoch: Epoch,
    app: App,
    /// Fires when its reader is not admitted any more.
    gone: CancellationToken,
    is_over: bool,
    _place: Place,
}

fn stream_of(
    app: &App,
    (place, gone): (Place, CancellationToken),
    source: Source,
    from: From,
    kinds: Vec<String>,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let epoch = app.engine.epoch();
    let (position, first) = match from {
        From::Position(position) => (position, Vec::new()),
        // What was before is gone; what is kept of this life follows.
        From::Anew => (0, vec![reset(epoch, 0)]),
    };
    let reader = Reader::new(app.front.clone(), source, position, kinds);
    let following = Following { reader, epoch, app: app.clone(), gone, is_over: false, _place: place };
    let rest = stream::unfold(following, |mut following| async move {
        let events = following.next().await?;
        Some((stream::iter(events), following))
    });
    stream::iter(first).chain(rest.flatten()).map(Ok)
}

impl Following {
    /// The next events to send; `None` at the end.
    async fn next(&mut self) -> Option<Vec<Event>> {
        if self.is_over {
            return None;
        }
        let read = tokio::select! {
            biased;
            () = self.gone.cancelled() => Err(TOKEN_REMOVED),
            read = self.reader.next() => Ok(read),
            () = self.app.stop.cancelled() => Err(SHUTTING_DOWN),
        };
        let read = match read {
            Ok(read) => read,
            Err(why) => {
                self.is_over = true;
                return Some(vec![Event::default().event("end").data(json!({ "why": why }).to_string())]);
            }
        };
        Some(match read {
            Read::Events(events) => {
                let event = |event: &std::sync::Arc<crate::events::Kept>| {
                    Event::default()
                        .id(Cursor::new(self.epoch, event.position()).to_string())
                        .data(event.line())
                };
                events.iter().map(event).collect()
            }
            Read::Reset(position) => vec![reset(self.epoch, position)],
        })
    }
}

fn reset(epoch: Epoch, position: u64) -> Event {
    let from = Cursor::new(epoch, position).to_string();
    Event::default().event("reset").id(from.as_str()).data(json!({ "from": from }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Front, Scope, SecretHash, Server, ServerOptions, Token};
    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt as _;
    use std::sync::Arc;
    use tokio::time::{Instant, timeout};
    use toolyard::Engine;

    /// The application of a server without an engine's tools, and its holder of a token.
    async fn watched() -> (App, Caller) {
        let front = Front::default();
        let engine = Engine::builder().events(front.clone()).build().await.unwrap();
        let server = Server::new(engine, front, ServerOptions::default()).unwrap();
        let token = Token::new("a", SecretHash::of("a"), [Scope::Observe]);
        (server.app().clone(), Caller(Arc::new(token)))
    }

    /// SM-9: a silent stream says every 15 s that it is there, with a comment that is no event.
    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_says_that_it_is_there() {
        let (app, caller) = watched().await;
        let request = Request::get("/events").body(Body::empty()).unwrap();
        let response = follow(&app, &caller, Source::All, &Which::default(), request.headers()).unwrap();
        let (mut body, begun) = (response.into_body(), Instant::now());
        let mut told = async || {
            let frame = timeout(10 * ALIVE_EVERY, body.frame()).await.expect("it says that it is there");
            frame.unwrap().unwrap().into_data().unwrap()
        };
        for count in 1..=3 {
            let comment = told().await;
            assert_eq!((&comment[..], begun.elapsed()), (&b":\n\n"[..], count * ALIVE_EVERY));
        }
        // An event is told at once, and the next comment comes 15 s after it.
        tokio::time::sleep(ALIVE_EVERY / 2).await;
        let _session = app.engine.session("s");
        let event = told().await;
        assert!(event.starts_with(b"id: "), "{event:?}");
        let comment = told().await;
        assert_eq!((&comment[..], begun.elapsed()), (&b":\n\n"[..], ALIVE_EVERY / 2 + 4 * ALIVE_EVERY));
    }
}
