//! A turn, as its next engine goes on from it.

use crate::{
    error::JournalError,
    reader::{
        AnswerRow, AttemptRow, BatchRow, CallRow, CallState, CancelRow, EndRow, OpenTurn, QuestionRow,
        Reader, Verdict,
    },
};
use std::time::{Duration, SystemTime};
use toolyard::{
    Answer, Decision, PastAttempt, PastBatch, PastCall, PastEnd, PastQuestion, PastTurn, SessionId,
};

impl Reader {
    /// What is listed of a turn that is open.
    pub(super) fn described(&self, open: OpenTurn) -> Result<toolyard::OpenTurn, JournalError> {
        let OpenTurn { session, agent, turn, open_calls, .. } = open;
        let (is_named, requests) = self.requests(&session, turn)?;
        Ok(toolyard::OpenTurn { session, is_named, agent, turn, requests, open_calls })
    }

    pub(super) fn past_turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, JournalError> {
        let Some((found, first)) = self.found_turn(None, session.as_str(), turn)? else { return Ok(None) };
        let epochs = self.epochs()?;
        let epoch = epochs.iter().find(|epoch| epoch.epoch == found.epoch);
        let is_unsure = first <= self.unsure_until()?;
        let roots: Vec<_> = found.batches.into_iter().filter(|batch| batch.parent.is_none()).collect();
        let Some(agent) = roots.first().map(|batch| batch.agent.clone()) else { return Ok(None) };
        let is_cancelled = found.cancels.iter().any(|cancel| match cancel {
            CancelRow::Turn { agent: of, turn: it } => *it == turn && is_under(agent.as_str(), of.as_str()),
            _ => false,
        });
        let (began, ended) = (roots.iter().map(|batch| batch.arrived).min(), ended(&roots));
        let batches = roots.into_iter().map(|batch| past_batch(batch, is_unsure));
        let engine = epoch.and_then(|epoch| epoch.engine.as_deref()?.parse().ok());
        let batches = batches.collect();
        Ok(Some(PastTurn { agent, turn, epoch: engine, is_cancelled, began, ended, batches }))
    }
}

/// When the last call of these batches ended, if all have; of batches without calls, when the last came.
fn ended(batches: &[BatchRow]) -> Option<SystemTime> {
    let ends = batches.iter().flat_map(|batch| {
        let end = |call: &CallRow| match &call.state {
            CallState::Ended(end) => Some(end.ended),
            _ => None,
        };
        let arrived = (!batch.is_open).then_some(batch.arrived);
        batch.calls.iter().map(end).chain([arrived])
    });
    ends.collect::<Option<Vec<_>>>()?.into_iter().max()
}

fn past_batch(batch: BatchRow, is_unsure: bool) -> PastBatch {
    let BatchRow { batch, request, is_sequential, is_resend, is_open, calls, .. } = batch;
    let calls = calls.into_iter().map(|call| past_call(call, is_unsure)).collect();
    PastBatch { batch, request, is_sequential, is_resend, is_open, calls }
}

fn past_call(row: CallRow, is_unsure: bool) -> PastCall {
    let CallRow { call, state, is_cancelled, has_dispatched, questions, verdict, asked, .. } = row;
    let (attempts, end) = match state {
        CallState::NotStarted => (Vec::new(), None),
        CallState::Attempted { attempts } => (attempts, None),
        CallState::Ended(mut end) => (std::mem::take(&mut end.attempts), Some(Box::new(past_end(*end)))),
    };
    PastCall {
        call,
        is_cancelled,
        is_unsure,
        has_dispatched,
        attempts: attempts.into_iter().map(past_attempt).collect(),
        end,
        question: questions.into_iter().next_back().map(past_question),
        reconciled: asked,
        done: match verdict {
            Some(Verdict::Done(output)) => Some(output),
            _ => None,
        },
    }
}

fn past_attempt(row: AttemptRow) -> PastAttempt {
    let past = SystemTime::now().duration_since(row.started).unwrap_or(Duration::ZERO);
    PastAttempt {
        attempt: row.attempt,
        version: row.version,
        side_effects: row.side_effects,
        is_repeatable: row.is_repeatable,
        is_recursive: row.is_recursive,
        key: row.key,
        arguments: row.arguments,
        time_left: row.timeout.saturating_sub(past),
        retried_after: row.end.filter(|end| end.is_retried).and_then(|end| end.status.err()),
    }
}

fn past_end(row: EndRow) -> PastEnd {
    PastEnd {
        status: row.status,
        attempts: row.started,
        dedupe: row.dedupe,
        routing: row.routing,
        sandbox: row.sandbox,
        cancel_requested: row.cancel_requested,
        queued: row.queued,
        ran: row.ran,
    }
}

fn past_question(row: QuestionRow) -> PastQuestion {
    let links = row.answer.as_ref().map(|answer| answer.links.clone()).unwrap_or_default();
    let answer = row.answer.map(|answer| (answer.digest, past_answer(answer)));
    PastQuestion { request: row.request, answer, links }
}

fn past_answer(row: AnswerRow) -> Answer {
    let who = row.who.unwrap_or_default();
    let answer = match (row.decision, row.edited) {
        (Decision::Allow, None) => Answer::allow(who),
        (Decision::Allow, Some(edited)) => Answer::edit(who, edited),
        (Decision::Always, _) => Answer::always(who),
        (Decision::Deny, _) => Answer::deny(who),
        (Decision::Never, _) => Answer::never(who),
        (Decision::Nobody, _) => Answer::nobody(),
        (Decision::TooLong, _) => Answer::too_long(),
    };
    match row.reason {
        Some(reason) => answer.because(reason),
        None => answer,
    }
}

/// Whether an agent is this one, or descends from it.
fn is_under(agent: &str, above: &str) -> bool {
    agent.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
