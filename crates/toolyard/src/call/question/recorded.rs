//! A question and its answer, as they are recorded: it is shown when it is durable, and the answer counts when that is
//! (SM-4).

use super::{Question, Settled};
use crate::{
    call::refusals::Refusal,
    config::RECORD_WAIT,
    record::{AnswerRecord, Durable, QuestionRecord, Recorder},
};
use toolyard_core::{CallError, event::SettledBy};

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
        self.durable(|recorder| recorder.question(&record)).await
    }

    /// Waits until the answer that settles the question is durable, if one does.
    pub(super) async fn record_answer(&self, settled: &Settled) -> Result<(), CallError> {
        let (answer, by) = match settled {
            Settled::Answered(answer) => (answer, SettledBy::Approver),
            Settled::Shared(answer) => (answer, SettledBy::Shared),
            Settled::With(answer) => (answer, SettledBy::Pattern),
            Settled::Panicked | Settled::Expired | Settled::Refused(_) => return Ok(()),
        };
        let (request, digest) = (self.request.id(), *self.request.digest());
        let record = AnswerRecord { call: self.at().call_place(), request, digest, answer, by };
        self.durable(|recorder| recorder.answer(&record)).await
    }

    /// Gives a record, and waits until it is durable.
    async fn durable(&self, give: impl FnOnce(&dyn Recorder) -> Durable) -> Result<(), CallError> {
        let engine = self.at().engine();
        let Some(pending) = engine.recorder.as_ref().and_then(|recorder| recorder.give(give)) else {
            return Ok(());
        };
        let foundation = self.call.batch.foundation();
        let durable = async {
            foundation.durable().await?;
            pending.await
        };
        match engine.tasks.timeout(RECORD_WAIT, durable).await {
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
