//! A turn whose response is passed on while the model writes it (CL-5).
//!
//! ```text
//!   body ─► SseDecoder ─► OpenBatch ─► results ─┐
//!     │ breaks off, or cannot be read           ▼
//!     └─► broken: what has come runs on   event: turn, call …, results | broken
//!             └─ PUT the whole response ─► resend: calls that have run keep their results (CL-8)
//! ```

use super::{
    results::Shown,
    turns::{batch_of, finish_or_suspend, with_own_names},
};
use crate::{
    app::App,
    book::{Phase, Room, Served, ServedTurn},
    past::request_of,
    problem::Problem,
};
use axum::{
    body::Body,
    http::StatusCode,
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
};
use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::json;
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{OnceCell, mpsc},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Call, OpenBatch, Session};
use toolyard_wire::{Dialect, Format, Message, NameMap, SseDecoder};

/// How long a model may write nothing. Then its stream is broken.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// How many events of the answer wait for their reader. When there are more, the body is read no further.
const EVENTS_MAX: usize = 64;

/// Starts a turn whose calls are still being written, and answers with what happens to it.
pub(super) fn start(
    app: App,
    (served, room): (Arc<Served>, Room),
    agent: Session,
    (body, gone): (Body, CancellationToken),
    from: Option<Format>,
    to: Option<Format>,
) -> Response {
    let engine_turn = Arc::new(agent.turn());
    let batch = engine_turn.open_batch();
    let path = agent.agent().clone();
    let format = from.unwrap_or(Format::Neutral);
    let turn = Arc::new(ServedTurn::new(engine_turn, path, Phase::Streaming, format, 0));
    served.turns.add(room, turn.clone());
    let (tell, told) = mpsc::channel(EVENTS_MAX);
    let (gone_too, is_told, untold) = (gone.clone(), OnceCell::new(), Mutex::default());
    let streamed = Streamed { app, served, agent, turn, to, tell, is_told, untold, gone: gone_too };
    // In a task of its own: what has come runs on when its sender goes away (HT-2).
    tokio::spawn(streamed.run(batch, body, from));
    let events = stream::unfold(told, |mut told| async move { told.recv().await.map(|event| (event, told)) });
    let events = events.map(Ok::<_, Infallible>).take_until(gone.cancelled_owned());
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

struct Streamed {
    app: App,
    served: Arc<Served>,
    agent: Session,
    turn: Arc<ServedTurn>,
    to: Option<Format>,
    tell: mpsc::Sender<Event>,
    /// Whether its number is told, before all else, and the calls that have come before that.
    is_told: OnceCell<()>,
    untold: Mutex<Vec<serde_json::Value>>,
    /// Fires when its sender is not admitted any more.
    gone: CancellationToken,
}

impl Streamed {
    async fn run(self, batch: OpenBatch, body: Body, from: Option<Format>) {
        let number = self.turn.number;
        let mut decoder = SseDecoder::new(from);
        let ((), read) = tokio::join!(self.tell_number(), self.read(&batch, body, &mut decoder));
        let whole = read.and_then(|()| match decoder.into_message() {
            Some(message) if !message.is_cut() => Ok(message),
            _ => Err("the stream ended before the response did".to_owned()),
        });
        match whole {
            Ok(message) => {
                self.turn.moves(&[Phase::Streaming], Phase::Running);
                if self.app.engine.is_outlived() {
                    batch.of_request(request_of(message.format(), None));
                }
                let outcomes = batch.finish().await;
                let message = with_own_names(message, &self.agent);
                finish_or_suspend(&self.served, &self.turn, message, outcomes);
                let shown = Shown::of(&self.app, &self.served, &self.turn, self.to, false);
                self.tell(if shown.has_ended() { "results" } else { "suspended" }, &shown).await;
            }
            Err(why) => {
                self.served.has_broken(&self.turn);
                self.tell("broken", &json!({"turn": number, "why": why})).await;
                // What has come runs on, and its results are there when the response is sent whole.
                batch.finish().await;
                self.turn.settle();
            }
        }
    }

    /// Reads calls as they come.
    ///
    /// # Errors
    /// Why the stream broke off.
    async fn read(&self, batch: &OpenBatch, body: Body, decoder: &mut SseDecoder) -> Result<(), String> {
        let mut data = body.into_data_stream();
        loop {
            let next = tokio::select! {
                biased;
                () = self.gone.cancelled() => return Err("its sender is not admitted any more".to_owned()),
                () = self.served.until_closing() => return Err("its session is closing".to_owned()),
                next = timeout(SILENCE_MAX, data.next()) => next,
            };
            let next = next.map_err(|_| format!("nothing came for {} s", SILENCE_MAX.as_secs()))?;
            let Some(bytes) = next else { break };
            let bytes = bytes.map_err(|_| "the connection broke off".to_owned())?;
            let read = decoder.push(&bytes);
            self.push(batch, decoder).await;
            read.map_err(|error| error.to_string())?;
        }
        decoder.finish().map_err(|error| error.to_string())?;
        if decoder.message().is_none_or(|message| !message.is_cut()) {
            self.push(batch, decoder).await;
        }
        Ok(())
    }

    async fn push(&self, batch: &OpenBatch, decoder: &mut SseDecoder) {
        let calls = decoder.take_calls();
        let Some(format) = decoder.message().map(Message::format).filter(|_| !calls.is_empty()) else {
            return;
        };
        let rule = Dialect::from(format).name_rule();
        let entries = self.agent.definitions();
        let names = NameMap::new(rule, entries.iter().map(|entry| entry.name()));
        for mut call in calls {
            if let Some(own) = names.original(&call.name) {
                call.name = own.into();
            }
            let told = came(batch.len(), &call);
            batch.push(call);
            self.turn.grows(format, batch.len());
            if !self.keeps(&told) {
                self.tell("call", &told).await;
            }
        }
    }

    /// Keeps what is told of a call to come after the number, unless that is told, or too much is kept.
    fn keeps(&self, told: &serde_json::Value) -> bool {
        let mut untold = self.untold.lock();
        let is_kept = !self.is_told.initialized() && untold.len() < EVENTS_MAX;
        if is_kept {
            untold.push(told.clone());
        }
        is_kept
    }

    /// Tells of its number once that is recorded, so that no turn of a later life has it, and of the calls that have come
    /// meanwhile, which run.
    async fn tell_number(&self) {
        let told = self.is_told.get_or_init(|| async {
            let mut told = json!({"session": self.served.id().as_str(), "turn": self.turn.number});
            let recorded = self.turn.engine_turn().and_then(|turn| turn.recorded());
            if let Some(recorded) = recorded
                && recorded.await.is_err()
            {
                told["recorded"] = false.into();
            }
            self.send("turn", &told).await;
            loop {
                let untold = std::mem::take(&mut *self.untold.lock());
                if untold.is_empty() {
                    break;
                }
                for call in &untold {
                    self.send("call", call).await;
                }
            }
        });
        told.await;
    }

    async fn tell(&self, kind: &str, what: &impl serde::Serialize) {
        self.tell_number().await;
        self.send(kind, what).await;
    }

    async fn send(&self, kind: &str, what: &impl serde::Serialize) {
        let data = serde_json::to_string(what).expect("what is told can be written as JSON");
        // Whoever sent the stream may have gone.
        let _ = self.tell.send(Event::default().event(kind).data(data)).await;
    }
}

fn came(index: usize, call: &Call) -> serde_json::Value {
    json!({"index": index, "call_id": call.id.as_str(), "tool": call.name.as_ref()})
}

/// Goes on with a turn whose stream broke off, now that its response is known whole.
pub(super) fn go_on(
    app: &App,
    served: &Arc<Served>,
    turn: &Arc<ServedTurn>,
    message: Message,
) -> Result<(), Problem> {
    let engine_turn = turn.engine_turn().filter(|_| turn.moves(&[Phase::Broken], Phase::Running));
    let Some(engine_turn) = engine_turn else {
        let detail = "only a turn whose stream broke off can be sent again: start another one";
        return Err(Problem::new(StatusCode::CONFLICT, "not_broken", detail));
    };
    turn.grows(message.format(), message.calls().len());
    let request = app.engine.is_outlived().then(|| request_of(message.format(), None));
    let (app, served, turn) = (app.clone(), served.clone(), turn.clone());
    tokio::spawn(async move {
        turn.until_settled().await;
        // What has come may be suspended: the rest comes in the next life too.
        if app.is_draining() {
            return turn.suspend();
        }
        let outcomes = engine_turn.resend(batch_of(&message, request)).await;
        drop(engine_turn);
        finish_or_suspend(&served, &turn, message, outcomes);
    });
    Ok(())
}
