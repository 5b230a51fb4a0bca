//! Calls for people.

use super::{Shown, json};
use crate::{
    display::{clip, json_text, plain},
    journal::shown as moment,
};
use std::io::{self, Write};
use toolyard::{Decision, ToolOutput};
use toolyard_journal::{AttemptRow, BatchRow, CallRow, CallState, CancelRow, QuestionRow, Turn};

const NAME_CHARS: usize = 60;
const TEXT_CHARS: usize = 120;

/// Writes a turn with its calls.
pub(super) fn write(out: &mut impl Write, turn: &Turn, shown: &Shown) -> io::Result<()> {
    let session = clip(turn.session.as_str(), NAME_CHARS);
    writeln!(out, "session {session}, turn {}, recorded by epoch {}", turn.turn, turn.epoch)?;
    for cancel in &turn.cancels {
        if let Some(what) = cancelled(cancel, turn) {
            writeln!(out, "  cancelled: {what}")?;
        }
    }
    for batch in &turn.batches {
        self::batch(out, batch)?;
        for one in &batch.calls {
            call(out, one, shown)?;
        }
    }
    Ok(())
}

fn batch(out: &mut impl Write, batch: &BatchRow) -> io::Result<()> {
    let agent = clip(batch.agent.as_str(), NAME_CHARS);
    write!(out, "  batch {} of {agent}, {}", batch.batch, moment(batch.arrived))?;
    if let Some((parent, place)) = batch.parent {
        write!(out, ", dispatched by call {place} of batch {parent}")?;
    }
    writeln!(out, "{}", if batch.is_open { ", with calls to come" } else { "" })
}

fn call(out: &mut impl Write, row: &CallRow, shown: &Shown) -> io::Result<()> {
    let (id, tool) = (clip(row.call.id.as_str(), NAME_CHARS), clip(&row.call.name, NAME_CHARS));
    let (state, attempts) = match &row.state {
        CallState::NotStarted if row.is_cancelled => ("cancelled, not started", &[][..]),
        CallState::NotStarted => ("not started", &[][..]),
        CallState::Attempted { attempts } => ("attempted, without a result", &attempts[..]),
        CallState::Ended(end) if end.status.is_ok() => ("ended", &end.attempts[..]),
        CallState::Ended(end) => ("ended in an error", &end.attempts[..]),
    };
    writeln!(out, "    {id}  {tool}  {state}")?;
    let arguments = shown.arguments(&row.call.arguments).to_string();
    match shown.has_arguments {
        true => writeln!(out, "      arguments: {}", json_text(&arguments))?,
        false => writeln!(out, "      arguments: {}", clip(&arguments, TEXT_CHARS))?,
    }
    if let Some(key) = &row.call.idempotency_key {
        writeln!(out, "      key: {}", clip(&shown.text(key), NAME_CHARS))?;
    }
    for asked in &row.questions {
        question(out, asked, shown)?;
    }
    for one in attempts {
        attempt(out, one, shown)?;
    }
    if let CallState::Ended(end) = &row.state {
        let result = match &end.status {
            Ok(output) => shown.text(&ToolOutput::to_text(output)),
            Err(error) => format!("{}: {}", error.kind.code(), shown.text(&error.message)),
        };
        writeln!(out, "      result: {}", clip(&result, TEXT_CHARS))?;
    }
    match &row.verdict {
        Some(verdict) => writeln!(out, "      found out later: {}", json::verdict(verdict).replace('_', " ")),
        None => Ok(()),
    }
}

fn attempt(out: &mut impl Write, row: &AttemptRow, shown: &Shown) -> io::Result<()> {
    let (number, effects) = (row.attempt, row.side_effects);
    write!(out, "      attempt {number} ({effects}), {}", moment(row.started))?;
    match &row.end {
        None => writeln!(out),
        Some(end) => {
            let then = if end.is_retried { "tried again after" } else { "ended with" };
            let what = match &end.status {
                Ok(_) => "an output".to_owned(),
                Err(error) => format!("{}: {}", error.kind.code(), shown.text(&error.message)),
            };
            writeln!(out, ": {then} {}", clip(&what, TEXT_CHARS))
        }
    }
}

fn question(out: &mut impl Write, row: &QuestionRow, shown: &Shown) -> io::Result<()> {
    write!(out, "      question {}, {}: ", row.request, moment(row.asked))?;
    let Some(answer) = &row.answer else {
        return match row.shares {
            Some(other) => writeln!(out, "asked as {other}"),
            None => writeln!(out, "OPEN"),
        };
    };
    let said = match answer.decision {
        Decision::Allow | Decision::Always => "approved",
        Decision::Deny | Decision::Never => "denied",
        _ => "not answered",
    };
    let edited = if answer.edited.is_some() { ", with other arguments," } else { "" };
    write!(out, "{said}{edited}")?;
    if let Some(who) = &answer.who {
        write!(out, " by {}", clip(&shown.text(who), NAME_CHARS))?;
    }
    match &answer.reason {
        Some(reason) => writeln!(out, ": {}", plain(&clip(&shown.text(reason), TEXT_CHARS))),
        None => writeln!(out),
    }
}

/// What a cancel is about, unless it is about another turn.
fn cancelled(cancel: &CancelRow, turn: &Turn) -> Option<String> {
    let agent = |agent: &toolyard::AgentPath| clip(agent.as_str(), NAME_CHARS);
    let has_batch = |number: &u64| turn.batches.iter().any(|batch| batch.batch == *number);
    Some(match cancel {
        CancelRow::Session { agent: of } => format!("all of {}", agent(of)),
        CancelRow::Turn { agent: of, turn: number } if *number == turn.turn => {
            format!("the turn of {}", agent(of))
        }
        CancelRow::Batch { batch, .. } if has_batch(batch) => format!("batch {batch}"),
        CancelRow::Call { batch, place, .. } if has_batch(batch) => format!("call {place} of batch {batch}"),
        CancelRow::Calls { id, turn: of, .. } if of.is_none_or(|of| of == turn.turn) => {
            format!("calls with the id {}, in flight then", clip(id.as_str(), NAME_CHARS))
        }
        CancelRow::InFlight { agent: of } => format!("what was in flight of {} then", agent(of)),
        _ => return None,
    })
}
