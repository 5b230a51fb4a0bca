//! Calls that a function of the parent makes while it runs (CL-4).

use super::{answers::Answers, functions::NestedRoom};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use toolyard::{Call, CallError, Engine, ErrorKind, OpenBatch, Outcome, Routing, Session, ToolContext};

/// A batch of an invocation. Each of its calls is answered as it ends, or when the batch is dropped.
pub(super) struct Nested {
    turn: Arc<str>,
    calls: Vec<Call>,
    /// Which of them have been answered.
    told: Vec<bool>,
    cancel: CancellationToken,
    /// The batch, while it runs.
    batch: Option<OpenBatch>,
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
        let told = vec![false; calls.len()];
        Self { turn, calls, told, cancel, batch: None, number: None, outcomes: None, answers, _room: room }
    }

    /// Runs it for the handler of this call, on the handler's task.
    pub(super) async fn run(mut self, engine: &Engine, cx: &ToolContext) {
        // One whose session has closed meanwhile makes no more calls.
        let Some(agent) = agent(engine, cx) else { return };
        self.number = Some(cx.turn());
        let batch = self.batch.insert(agent.open_batch());
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
                    self.told[index] = true;
                    answered += 1;
                }
            }
        }
        if let Some(batch) = self.batch.take() {
            self.outcomes = Some(batch.finish().await);
        }
    }

    /// What has come of its calls. Of those that its end has cut off, nobody knows how far they were, if they were begun.
    fn outcomes(&mut self) -> Vec<Outcome> {
        if let Some(outcomes) = self.outcomes.take() {
            return outcomes;
        }
        let mut finished = self.batch.as_ref().map(OpenBatch::finished).unwrap_or_default();
        finished.resize(self.calls.len(), None);
        let is_begun = self.number.is_some();
        let cut_off = |call: &Call| {
            let error = CallError::new(
                ErrorKind::Cancelled,
                "Cancelled: the function that has made the call has ended",
            );
            let error = if is_begun { error } else { error.not_started() };
            Outcome::new(call, Routing::ShortCircuit, Err(error))
        };
        self.calls.iter().zip(finished).map(|(call, end)| end.unwrap_or_else(|| cut_off(call))).collect()
    }
}

/// The agent that the call of a handler is made by.
fn agent(engine: &Engine, cx: &ToolContext) -> Option<Session> {
    let root = engine.find(cx.session())?;
    let mut names = cx.agent().as_str().split('/').skip(1);
    names.try_fold(root, |agent, name| agent.sub_agent(name))
}

impl Drop for Nested {
    fn drop(&mut self) {
        let outcomes = self.outcomes();
        let told = std::mem::take(&mut self.told);
        self.answers.rest(self.turn.clone(), self.number.unwrap_or_default(), outcomes, told);
    }
}
