//! Calls that a function of the parent makes while it runs (CL-4).

use super::{answers::Answers, functions::NestedRoom};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolyard::{Call, CallError, ErrorKind, OpenBatch, Outcome, Routing, SubAgents as _, ToolContext};

/// A batch of an invocation. Each of its calls is answered as it ends, or when the batch is dropped.
pub(super) struct Nested {
    turn: Arc<str>,
    calls: Vec<Call>,
    /// What they have been answered with.
    told: Vec<Option<Outcome>>,
    cancel: CancellationToken,
    /// The batch, while it runs.
    batch: Option<OpenBatch>,
    /// The engine's number of the turn that it runs in; 0 until it does.
    number: u64,
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
        let told = vec![None; calls.len()];
        Self { turn, calls, told, cancel, batch: None, number: 0, answers, _room: room }
    }

    /// Runs it for the handler of this call, on the handler's task. Its end is told once all of its calls are answered, though
    /// the handler then waits for its permits (CC-6).
    pub(super) async fn run(mut self, cx: &ToolContext) {
        self.number = cx.turn();
        let Some(batch) = cx.open_batch() else { return };
        let batch = self.batch.insert(batch);
        let mut ends = batch.ends();
        self.calls.iter().for_each(|call| batch.push(call.clone()));
        let (mut answered, mut is_cancelled) = (0, false);
        while answered < self.calls.len() {
            tokio::select! {
                biased;
                () = self.cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    batch.cancel();
                }
                (index, outcome) = ends.next() => {
                    self.answers.one(&self.turn, index, &outcome).await;
                    self.told[index] = Some(outcome);
                    answered += 1;
                }
            }
        }
        let batch = self.batch.take();
        drop(self);
        if let Some(batch) = batch {
            batch.finish().await;
        }
    }

    /// What has come of its calls. Of those that its end has cut off, nobody knows how far they were, if they were begun.
    fn outcomes(&mut self) -> (Vec<Outcome>, Vec<bool>) {
        // Those that have not begun have ended then.
        self.batch.iter().for_each(OpenBatch::cancel);
        let mut finished = self.batch.as_ref().map(OpenBatch::finished).unwrap_or_default();
        finished.resize(self.calls.len(), None);
        let is_begun = self.number > 0;
        let cut_off = |call: &Call| {
            let error = CallError::new(
                ErrorKind::Cancelled,
                "Cancelled: the function that has made the call has ended",
            );
            let error = if is_begun { error } else { error.not_started() };
            Outcome::new(call, Routing::ShortCircuit, Err(error))
        };
        let is_told = self.told.iter().map(Option::is_some).collect();
        let each = self.calls.iter().zip(std::mem::take(&mut self.told)).zip(finished);
        let outcomes =
            each.map(|((call, told), end)| told.or(end).unwrap_or_else(|| cut_off(call))).collect();
        (outcomes, is_told)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        let (outcomes, is_told) = self.outcomes();
        self.answers.rest(self.turn.clone(), self.number, outcomes, is_told);
    }
}
