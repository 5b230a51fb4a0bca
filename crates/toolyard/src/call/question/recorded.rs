//! A question and its answer, as they are recorded: it is shown when it is durable, and the answer counts when that is
//! (SM-4).
//!
//! ```text
//!   answer ─► record ─┬─ durable ────────────────► it counts: approved, or refused; its giver is told
//!                     ├─ not, or late ───────────► its call is refused, and its giver told that it does not count
//!                     └─ its call is suspended ──► the drain waits for the record; durable ─► it holds for whoever
//!                                                  takes the call up (SM-10), and its giver is told so
//! ```

use super::{Question, Settled};
use crate::{
    call::{given::Given, in_flight::CallRef, refusals::Refusal},
    config::RECORD_WAIT,
    record::{AnswerRecord, Durable, QuestionRecord, RecordError, Recorder},
};
use futures::future::BoxFuture;
use tokio::time::Instant;
use toolyard_core::{CallError, Receipt, event::SettledBy};

/// What a question or its answer waits for.
type UntilDurable = BoxFuture<'static, Result<(), RecordError>>;

impl Question {
    /// Waits until a recorder knows what is asked about now. The error is that of a call whose question cannot be shown.
    pub(super) async fn record(&mut self) -> Result<(), CallError> {
        let digest = *self.request.digest();
        if self.recorded == Some(digest) {
            return Ok(());
        }
        self.recorded = Some(digest);
        let record =
            QuestionRecord { call: self.at().call_place(), request: &self.request, shares: self.shares() };
        let Some(mut durable) = self.give(|recorder| recorder.question(&record)) else { return Ok(()) };
        let until = self.at().engine().clock.now() + RECORD_WAIT;
        self.until_durable(&mut durable, until).await
    }

    /// Waits until the answer that settles the question is durable, if one does. If the question is withdrawn meanwhile
    /// because its call is suspended, its giver is told later.
    pub(super) async fn record_answer(&mut self, settled: &Settled) -> Result<(), CallError> {
        let (answer, by) = match settled {
            Settled::Answered(answer) => (answer, SettledBy::Approver),
            Settled::Shared(answer) => (answer, SettledBy::Shared),
            Settled::With(answer) => (answer, SettledBy::Pattern),
            Settled::Panicked | Settled::Expired | Settled::Refused(_) => return Ok(()),
        };
        let (request, digest) = (self.request.id(), *self.request.digest());
        let record = AnswerRecord { call: self.at().call_place(), request, digest, answer, by };
        let Some(durable) = self.give(|recorder| recorder.answer(&record)) else { return Ok(()) };
        let until = self.at().engine().clock.now() + RECORD_WAIT;
        let mut answer = Unsettled::new(self.call.clone(), until, Some(durable), self.given.take());
        let is_durable = match &mut answer.durable {
            Some(durable) => self.until_durable(durable, until).await,
            None => Ok(()),
        };
        answer.durable = None;
        self.given = answer.given.take();
        is_durable
    }

    /// Whether its call was suspended while it was open: an answer that is durable holds when the call is taken up.
    pub(super) fn is_asked_later(&self) -> bool {
        is_asked_later(&self.call)
    }

    /// Gives a record; `None` if nothing has to wait for it.
    fn give(&self, give: impl FnOnce(&dyn Recorder) -> Durable) -> Option<UntilDurable> {
        let pending = self.at().engine().recorder.as_ref()?.give(give)?;
        let foundation = self.call.batch.foundation();
        Some(Box::pin(async move {
            foundation.durable().await?;
            pending.await
        }))
    }

    async fn until_durable(&self, durable: &mut UntilDurable, until: Instant) -> Result<(), CallError> {
        let engine = self.at().engine();
        match engine.tasks.timeout_at(until, durable).await {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => {
                engine
                    .log_unrecorded("a call is not run, because its question could not be recorded", &error);
                Err(Refusal::Unrecorded.error())
            }
            None => Err(Refusal::RecordLate.error()),
        }
    }
}

fn is_asked_later(call: &CallRef) -> bool {
    call.batch.records().is_some_and(|records| records.is_asked_later(call.index))
}

/// An answer that is being recorded. A drain waits for it.
struct Unsettled {
    call: CallRef,
    /// `None` once that is known.
    durable: Option<UntilDurable>,
    /// Its giver, unless somebody else's question has been answered.
    given: Option<Given>,
    until: Instant,
}

impl Unsettled {
    fn new(call: CallRef, until: Instant, durable: Option<UntilDurable>, given: Option<Given>) -> Self {
        if let Some(records) = call.batch.records() {
            records.records_answer();
        }
        Self { call, durable, given, until }
    }

    /// Waits for the record of an answer whose call was suspended, and tells its giver whether it holds.
    async fn settle_later(mut self, durable: UntilDurable) {
        let engine = self.call.at().engine().clone();
        let durable = engine.durable(durable, self.until).await;
        if let Some(given) = self.given.take() {
            given.tell(if durable.is_ok() { Receipt::Taken } else { Receipt::Withdrawn });
        }
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        let (durable, given) = (self.durable.take(), self.given.take());
        if let (Some(durable), Some(given)) = (durable, given)
            && is_asked_later(&self.call)
        {
            // Withdrawn while it waited.
            let later = Self::new(self.call.clone(), self.until, None, Some(given));
            self.call.at().engine().tasks.spawn(later.settle_later(durable));
        }
        if let Some(records) = self.call.batch.records() {
            records.answer_told();
            self.call.at().engine().batch_ends.notify();
        }
    }
}
