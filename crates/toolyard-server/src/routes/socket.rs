//! `/stream`: the events over a WebSocket, one way.

use super::{
    document::Common,
    events::{From, SHUTTING_DOWN, TOKEN_REMOVED, from, kinds},
};
use crate::{
    access::{Caller, Scope},
    app::App,
    events::{Read, Reader, Source},
    http::{Held, Place, QueryOf, admit},
    problem::Problem,
};
use axum::{
    extract::{
        FromRequestParts, Request, State,
        ws::{Message, WebSocket, WebSocketUpgrade},
    },
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::{interval, timeout};
use toolyard::event::Cursor;
use utoipa::IntoParams;

/// The largest message of a reader, in bytes. What it says is not looked at.
const MESSAGE_BYTES_MAX: usize = 4 << 10;

/// How often a silent socket is asked whether it is there.
const PING_EVERY: Duration = Duration::from_secs(15);

/// How long a message may take to be read. A slower reader is dropped, and resumes by its cursor.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct Which {
    /// A ticket.
    ticket: String,
    /// Only events of this session.
    session: Option<String>,
    /// Only those after this cursor; `0` for all that are kept.
    after: Option<String>,
    /// Only these kinds, with commas between them.
    kinds: Option<String>,
}

/// Follow events over a WebSocket. Each message is `{"id", "event"}`, `{"reset": {"from"}}` or `{"end": {"why"}}`.
#[utoipa::path(get, path = "/stream", tag = "events", params(Which), security(()),
    responses((status = 101, description = "The socket is open"), (status = 426, description = "It is no request for a WebSocket",
        body = Object, content_type = "application/problem+json"), Common))]
pub(super) async fn stream(
    State(app): State<App>,
    QueryOf(which): QueryOf<Which>,
    request: Request,
) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &app).await;
    let upgrade = upgrade
        .map_err(|error| Problem::new(StatusCode::UPGRADE_REQUIRED, "no_websocket", error.body_text()))?;
    let token = app.access.tickets.redeem(&which.ticket);
    let caller = Caller(token.ok_or_else(|| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "ticket",
            "this ticket was used, is too old, or is none: get another one",
        )
    })?);
    admit(&parts.extensions, &app, &caller)?;
    let source = match &which.session {
        Some(id) => Source::Session(app.seen(&caller, id)?),
        None => {
            caller.needs(&[Scope::Observe, Scope::Operate, Scope::Approve])?;
            Source::All
        }
    };
    let from = from(&app, which.after.as_deref())?;
    let kinds = kinds(which.kinds.as_deref())?;
    let place = app.streams.open(&caller.0)?;
    // The connection goes on as the socket's.
    let held = parts.extensions.remove::<Held>();
    // A message arrives in frames, each of which is collected first; the buffer is there from the beginning.
    Ok(upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(MESSAGE_BYTES_MAX)
        .on_upgrade(move |socket| follow(app, socket, (place, held, caller), source, from, kinds))
        .into_response())
}

async fn follow(
    app: App,
    mut socket: WebSocket,
    (_place, _held, caller): (Place, Option<Held>, Caller),
    source: Source,
    from: From,
    kinds: Vec<String>,
) {
    let (position, mut next) = match from {
        From::Position(position) => (position, Vec::new()),
        From::Anew => (0, vec![reset(&app, 0)]),
    };
    let mut reader = Reader::new(app.front.clone(), source, position, kinds);
    let mut ping = interval(PING_EVERY);
    loop {
        for text in next.drain(..) {
            if !sent(&mut socket, Message::Text(text.into())).await {
                return;
            }
        }
        let why = tokio::select! {
            biased;
            () = caller.0.gone.cancelled() => TOKEN_REMOVED,
            heard = socket.recv() => match heard {
                // It is one way: what comes is not looked at, but its end is.
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => continue,
            },
            read = reader.next() => {
                next = texts(&app, read);
                continue;
            }
            () = app.stop.cancelled() => SHUTTING_DOWN,
            _ = ping.tick() => match sent(&mut socket, Message::Ping(Default::default())).await {
                true => continue,
                false => return,
            },
        };
        let end = json!({"end": {"why": why}}).to_string();
        sent(&mut socket, Message::Text(end.into())).await;
        return;
    }
}

async fn sent(socket: &mut WebSocket, message: Message) -> bool {
    timeout(SEND_TIMEOUT, socket.send(message)).await.is_ok_and(|sent| sent.is_ok())
}

fn texts(app: &App, read: Read) -> Vec<String> {
    match read {
        Read::Events(events) => {
            let text = |event: &std::sync::Arc<crate::events::Kept>| {
                let id = Cursor::new(app.engine.epoch(), event.position());
                // A line is a JSON object as it is.
                format!(r#"{{"id":"{id}","event":{}}}"#, event.line())
            };
            events.iter().map(text).collect()
        }
        Read::Reset(position) => vec![reset(app, position)],
    }
}

fn reset(app: &App, position: u64) -> String {
    json!({"reset": {"from": Cursor::new(app.engine.epoch(), position)}}).to_string()
}
