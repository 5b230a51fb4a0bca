//! The calls that ran for the longest time.

use super::{Turn, json::ms, timeline::Span};
use crate::{
    display::{Brief, clip},
    table::Table,
};
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolyard::{CallId, ErrorKind};

/// The number of calls that are kept.
const CALLS_MAX: usize = 10;

const NAME_CHARS: usize = 32;

/// The slowest calls, slowest first.
#[derive(Debug, Default)]
pub(super) struct Slowest {
    calls: Vec<Slow>,
}

#[derive(Debug)]
struct Slow {
    turn: Option<Turn>,
    call_id: CallId,
    tool: Arc<str>,
    queued: Duration,
    ran: Duration,
    attempts: usize,
    error: Option<ErrorKind>,
}

impl Slowest {
    /// Keeps a call if it is among the slowest; of equally slow ones, those that ended first.
    pub(super) fn add(&mut self, turn: Option<&Turn>, span: &Span) {
        let ran = span.ran();
        let place = self.calls.partition_point(|call| call.ran >= ran);
        if span.started.is_none() || place == CALLS_MAX {
            return;
        }
        let call = Slow {
            turn: turn.cloned(),
            call_id: span.call_id.clone(),
            tool: span.tool.clone(),
            queued: span.queued(),
            ran,
            attempts: span.attempts.len(),
            error: span.error.map(|error| error.kind),
        };
        self.calls.insert(place, call);
        self.calls.truncate(CALLS_MAX);
    }

    /// A line for each.
    pub(super) fn text(&self) -> String {
        if self.calls.is_empty() {
            return String::new();
        }
        let mut table = Table::new(["slowest call", "tool", "ran", "queued", "episode", "turn", "ended"]);
        for call in &self.calls {
            let (episode, turn) = match &call.turn {
                Some(turn) => (clip(&turn.episode, NAME_CHARS), turn.turn.to_string()),
                None => ("-".to_owned(), "-".to_owned()),
            };
            table.row([
                clip(call.call_id.as_str(), NAME_CHARS),
                clip(&call.tool, NAME_CHARS),
                Brief(call.ran).to_string(),
                Brief(call.queued).to_string(),
                episode,
                turn,
                call.error.map_or_else(|| "ok".to_owned(), |error| error.to_string()),
            ]);
        }
        table.to_string()
    }

    /// An object for each.
    pub(super) fn json(&self) -> Value {
        self.calls.iter().map(Slow::json).collect()
    }
}

impl Slow {
    fn json(&self) -> Value {
        let mut call = json!({
            "call_id": self.call_id.as_str(),
            "name": self.tool.as_ref(),
            "ran_ms": ms(self.ran),
            "queued_ms": ms(self.queued),
            "attempts": self.attempts,
            "error": self.error,
        });
        if let Some(Turn { episode, turn, .. }) = &self.turn {
            (call["id"], call["turn"]) = (episode.as_ref().into(), (*turn).into());
        }
        call
    }
}
