//! Calls for programs: a line for each.

use super::Shown;
use crate::journal::{millis, write_line};
use serde_json::{Value, json};
use std::io::{self, Write};
use toolyard_journal::{AttemptRow, BatchRow, CallRow, CallState, EndRow, QuestionRow, Turn, Verdict};

/// Writes the calls of a turn.
pub(super) fn write(out: &mut impl Write, turn: &Turn, shown: &Shown) -> io::Result<()> {
    for batch in &turn.batches {
        for call in &batch.calls {
            write_line(out, &fields(turn, batch, call, shown))?;
        }
    }
    Ok(())
}

fn fields(turn: &Turn, batch: &BatchRow, call: &CallRow, shown: &Shown) -> Value {
    let (state, attempts, end) = match &call.state {
        CallState::NotStarted => ("not_started", &[][..], None),
        CallState::Attempted { attempts } => ("attempted", &attempts[..], None),
        CallState::Ended(end) => ("ended", &end.attempts[..], Some(end)),
    };
    json!({
        "epoch": turn.epoch,
        "session": turn.session,
        "agent": batch.agent,
        "turn": turn.turn,
        "batch": batch.batch,
        "place": call.place,
        "call_id": call.call.id,
        "tool": call.call.name,
        "key": call.call.idempotency_key.as_deref().map(|key| shown.text(key)),
        "state": state,
        "is_cancelled": call.is_cancelled,
        "arguments": shown.arguments(&call.call.arguments),
        "attempts": attempts.iter().map(attempt).collect::<Vec<_>>(),
        "result": end.map(|end| result(end, shown)),
        "questions": call.questions.iter().map(|asked| question(asked, shown)).collect::<Vec<_>>(),
        "verdict": call.verdict.as_ref().map(verdict),
    })
}

fn attempt(attempt: &AttemptRow) -> Value {
    let end = attempt.end.as_ref();
    json!({
        "attempt": attempt.attempt,
        "version": attempt.version,
        "side_effects": attempt.side_effects,
        "approval": attempt.approval,
        "started_ms": millis(attempt.started),
        "ended_ms": end.map(|end| millis(end.ended)),
        "is_retried": end.map(|end| end.is_retried),
        "code": end.and_then(|end| end.status.as_ref().err()).map(|error| error.kind.code()),
    })
}

fn result(end: &EndRow, shown: &Shown) -> Value {
    let (name, value) = match &end.status {
        Ok(output) => ("output", json!(output)),
        Err(error) => ("error", json!(error)),
    };
    json!({
        "ok": end.status.is_ok(),
        name: shown.value(&value),
        "dedupe": end.dedupe,
        "sandbox": end.sandbox,
        "ended_ms": millis(end.ended),
    })
}

fn question(asked: &QuestionRow, shown: &Shown) -> Value {
    let answer = asked.answer.as_ref();
    json!({
        "request": asked.request,
        "digest": asked.digest,
        "asked_ms": millis(asked.asked),
        "shares": asked.shares,
        "decision": answer.map(|answer| answer.decision),
        "who": answer.and_then(|answer| answer.who.as_deref()).map(|who| shown.text(who)),
        "reason": answer.and_then(|answer| answer.reason.as_deref()).map(|reason| shown.text(reason)),
        "edited": answer.and_then(|answer| answer.edited.as_ref()).map(|edited| shown.arguments(edited)),
        "answered_ms": answer.map(|answer| millis(answer.answered)),
    })
}

/// The word for a verdict.
pub(super) const fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Done(_) => "done",
        Verdict::NotDone => "not_done",
        Verdict::Unknown => "unknown",
    }
}
