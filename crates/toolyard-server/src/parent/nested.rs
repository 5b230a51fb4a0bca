//! Calls that a function of the parent makes while it runs (CL-4).

use super::{answers::Answers, functions::NestedRoom};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolyard::{Batch, Call, CallError, ErrorKind, Outcome, Routing, ToolContext};

/// A batch of an invocation. Its calls are answered when it is dropped, whether or not it has run.
pub(super) struct Nested {
    turn: Arc<str>,
    calls: Vec<Call>,
    cancel: CancellationToken,
    /// The engine's number of the turn that it runs in, once it does.
    number: Option<u64>,
    outcomes: Option<Vec<Outcome>>,
    answers: Answers,
    _room: NestedRoom,
}

impl Nested {
    pub(super) fn new(
        turn: Arc<str>,
        calls: Vec<Call>,
        cancel: CancellationToken,
        answers: Answers,
        room: NestedRoom,
    ) -> Self {
        Self { turn, calls, cancel, number: None, outcomes: None, answers, _room: room }
    }

    /// Runs it for the handler of this call.
    pub(super) async fn run(mut self, cx: &ToolContext) {
        self.number = Some(cx.turn());
        let dispatching = cx.dispatch(Batch::new(self.calls.clone()));
        tokio::select! {
            biased;
            outcomes = dispatching => self.outcomes = Some(outcomes),
            () = self.cancel.cancelled() => {} // its calls end with it
        }
    }

    /// What has come of calls that ended with the batch: nobody knows how far they were, if they were begun.
    fn cancelled(&self) -> Vec<Outcome> {
        let cancelled = |call: &Call| {
            let error =
                CallError::new(ErrorKind::Cancelled, "Cancelled with the function that has made the call");
            let error = if self.number.is_some() { error } else { error.not_started() };
            Outcome::new(call, Routing::ShortCircuit, Err(error))
        };
        self.calls.iter().map(cancelled).collect()
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let outcomes = self.outcomes.take().unwrap_or_else(|| self.cancelled());
        self.answers.all(self.turn.clone(), self.number.unwrap_or_default(), outcomes);
    }
}
