//! A turn of the parent while it runs.
//!
//! ```text
//!   respond ────► Message ─► dispatch ───────────────────────────► results, for the next request
//!   tool_calls ─► feed ────► open batch ─► each end: tool_response ─► turn_ended
//! ```

use super::{answers::Answers, names::Names, tell};
use crate::{
    book::{Served, ServedTurn},
    routes::turns::finish,
};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;
use toolyard::{Call, OpenBatch, Outcome, Turn};
use toolyard_wire::{Format, Message, encode};

/// A turn, with all that it needs to run and to be told of.
pub(super) struct RunningTurn {
    pub(super) name: Arc<str>,
    pub(super) served: Arc<Served>,
    pub(super) turn: Arc<ServedTurn>,
    pub(super) engine_turn: Arc<Turn>,
    /// The turn that it waits for.
    pub(super) after: Option<Arc<ServedTurn>>,
    pub(super) names: Names,
    pub(super) answers: Answers,
}

impl RunningTurn {
    /// Runs the calls of a model's answer, and tells what goes into the next request.
    pub(super) async fn respond(self, message: Message, to: Option<Format>, each: bool) {
        self.until_its_turn().await;
        let outcomes = match each {
            false => self.engine_turn.dispatch(message.batch()).await,
            true => {
                let (batch, (_, feed)) = (self.engine_turn.open_batch(), mpsc::unbounded_channel());
                message.calls().iter().for_each(|call| batch.push(call.clone()));
                self.answer_each(batch, feed).await
            }
        };
        let results = match outcomes.is_empty() {
            true => Vec::<Value>::new().into(), // a message without a result is none that a provider takes
            false => listed(encode(&message, &outcomes, to.unwrap_or(message.format()))),
        };
        self.end(message, outcomes, Some(results)).await;
    }

    /// Runs calls as they come, and answers each.
    pub(super) async fn calls(self, calls: mpsc::UnboundedReceiver<Vec<Call>>) {
        self.until_its_turn().await;
        let outcomes = self.answer_each(self.engine_turn.open_batch(), calls).await;
        let calls = outcomes.iter().map(call_of).collect();
        self.end(Message::new(Format::Neutral, calls), outcomes, None).await;
    }

    async fn until_its_turn(&self) {
        if let Some(after) = &self.after {
            self.turn.until_its_turn(after).await;
        }
    }

    /// Answers each call as it ends, until no more come.
    async fn answer_each(
        &self,
        batch: OpenBatch,
        mut calls: mpsc::UnboundedReceiver<Vec<Call>>,
    ) -> Vec<Outcome> {
        let (mut ends, mut answered, mut is_open) = (batch.ends(), 0, true);
        while is_open || answered < batch.len() {
            tokio::select! {
                biased;
                more = calls.recv(), if is_open => match more {
                    Some(calls) => calls.into_iter().for_each(|call| batch.push(call)),
                    None => is_open = false,
                },
                // What has come by then is answered, and nothing more comes.
                () = self.served.until_closing(), if !calls.is_closed() => calls.close(),
                (index, outcome) = ends.next() => {
                    answered += 1;
                    self.answers.one(&self.name, index, &outcome).await;
                }
            }
        }
        batch.finish().await
    }

    async fn end(self, message: Message, outcomes: Vec<Outcome>, results: Option<Value>) {
        self.names.remove(self.served.id(), self.turn.number);
        let ended = tell::turn_ended(&self.name, self.turn.number, &outcomes, results);
        let Self { name, served, turn, engine_turn, answers, .. } = self;
        drop(engine_turn); // so that a session that closes has closed when its last turn has ended
        answers.end(&name, ended, || finish(&served, &turn, message, outcomes)).await;
    }
}

/// What goes into the next request as a list, whether it is one message or several in its format.
fn listed(results: Value) -> Value {
    match results {
        Value::Object(mut neutral) if neutral.contains_key("results") => neutral["results"].take(),
        results => tell::listed(results),
    }
}

/// The call that a result is of, for those who look at the turn later.
fn call_of(outcome: &Outcome) -> Call {
    Call::with_arguments(outcome.call_id.clone(), outcome.tool.clone(), outcome.arguments.clone())
}
