//! The batches of a turn, with their calls.

use super::{
    AnswerRow, AttemptRow, AttemptRowEnd, BatchRow, CallRow, CallState, EndRow, QuestionRow, Reader, Verdict,
    values::{At, Fault, agent, number, time_of, value, word},
};
use crate::{
    error::JournalError,
    listing::of_turn,
    op::whole,
    schema::{PLACES, is_cancelled},
    stamp::time,
};
use rusqlite::Row;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolyard::{Arguments, Call, CallError, CallTimeout, ErrorKind, Routing, Sandbox, ToolOutput};

impl Reader {
    pub(crate) fn batches(&self, session: i64, turn: u64) -> Result<Vec<BatchRow>, JournalError> {
        let sql = format!(
            "SELECT b.id, b.number, b.agent, b.request, b.parent % {PLACES}, p.number, b.calls IS NULL, b.is_sequential,
             b.arrived_ms, b.is_resend FROM batch_rows b LEFT JOIN batch_rows p ON p.id = b.parent / {PLACES}
             WHERE b.id IN ({}) ORDER BY b.id",
            of_turn("?1", "?2")
        );
        let mut all = self.rows(&sql, [session, whole(turn)], |row, at| {
            let parent: (Option<i64>, Option<i64>) = (row.get(5)?, row.get(4)?);
            let parent = match parent {
                (Some(batch), Some(place)) => Some((at.number(batch)?, at.number(place)?)),
                _ => None,
            };
            let batch = BatchRow {
                batch: number(row, 1, at)?,
                agent: agent(row, 2)?,
                request: row.get::<_, Option<String>>(3)?.map(Into::into),
                parent,
                is_open: row.get(6)?,
                is_sequential: row.get(7)?,
                is_resend: row.get(9)?,
                arrived: time_of(row, 8)?,
                calls: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, batch))
        })?;
        for (id, batch) in &mut all {
            batch.calls = self.calls_by("c.batch", *id)?;
        }
        Ok(all.into_iter().map(|(_, batch)| batch).collect())
    }

    /// The calls whose column, of the calls' `c`, has this value.
    pub(super) fn calls_by(&self, column: &'static str, value: i64) -> Result<Vec<CallRow>, JournalError> {
        let sql = format!(
            "SELECT c.id, c.place, c.call_id, c.tool, c.arguments, c.is_text, c.key, c.more, c.ended_ms, c.status, c.code,
             c.ending, c.dedupe, c.attempts, c.sandbox, v.found, v.output, coalesce(v.asked, 0), {},
             EXISTS (SELECT 1 FROM batch_rows n WHERE n.parent = c.id)
             FROM call_rows c JOIN batch_rows b ON b.id = c.batch LEFT JOIN verdict_rows v ON v.call = c.id
             WHERE {column} = ?1 ORDER BY c.id",
            is_cancelled()
        );
        let ended_and_rest = self.rows(&sql, [value], |row, at| {
            let call = CallRow {
                place: number(row, 1, at)?,
                call: call(row, at)?,
                state: CallState::NotStarted,
                is_cancelled: row.get(18)?,
                has_dispatched: row.get(19)?,
                questions: Vec::new(),
                verdict: verdict(row, at)?,
                asked: number(row, 17, at)?,
            };
            Ok((row.get::<_, i64>(0)?, call, end(row, at)?))
        })?;
        let with_details = |(id, call, end): (i64, CallRow, Option<EndRow>)| {
            let attempts = self.attempts(id, &call.call.arguments)?;
            let state = match end {
                Some(end) => CallState::Ended(Box::new(EndRow { attempts, ..end })),
                None if attempts.is_empty() && !call.has_dispatched => CallState::NotStarted,
                None => CallState::Attempted { attempts },
            };
            Ok(CallRow { state, questions: self.questions(id)?, ..call })
        };
        ended_and_rest.into_iter().map(with_details).collect()
    }

    fn attempts(&self, call: i64, sent: &Arguments) -> Result<Vec<AttemptRow>, JournalError> {
        let sql = "SELECT number, version, side_effects, arguments, approval, digest, timeout_ms, facts, started_ms,
                   ended_ms, status, is_retried, key FROM attempt_rows WHERE call = ?1 ORDER BY number";
        self.rows(sql, [call], |row, at| {
            let facts: Facts = value(row, 7, at)?;
            let arguments = match row.get::<_, Option<String>>(3)? {
                Some(text) => at.json(&text)?,
                None => sent.to_value(),
            };
            Ok(AttemptRow {
                attempt: number(row, 0, at)?,
                version: row.get(1)?,
                side_effects: word(row, 2, at)?,
                is_repeatable: facts.is_repeatable,
                is_recursive: facts.is_recursive,
                key: row.get::<_, Option<String>>(12)?.map(Into::into),
                cost: facts.cost,
                sandbox: facts.sandbox,
                arguments,
                approval: row.get::<_, Option<String>>(4)?.map(|it| at.word(&it)).transpose()?,
                digest: row.get::<_, Option<String>>(5)?.map(|it| at.word(&it)).transpose()?,
                timeout: Duration::from_millis(number(row, 6, at)?),
                started: time_of(row, 8)?,
                end: attempt_end(row, at)?,
            })
        })
    }

    fn questions(&self, call: i64) -> Result<Vec<QuestionRow>, JournalError> {
        let sql = "SELECT q.request, q.digest, q.arguments, q.shares, q.expires_ms, q.asked_ms, n.decision, n.digest, n.who,
                   n.reason, n.edited, n.edited_is_text, n.settled_by, n.answered_ms, n.links FROM question_rows q
                   LEFT JOIN answer_rows n ON n.call = q.call AND n.request = q.request
                   WHERE q.call = ?1 ORDER BY q.asked_ms, q.request";
        self.rows(sql, [call], |row, at| {
            let answer = match row.get::<_, Option<String>>(6)? {
                None => None,
                Some(decision) => Some(AnswerRow {
                    decision: at.word(&decision)?,
                    digest: word(row, 7, at)?,
                    who: row.get(8)?,
                    reason: row.get(9)?,
                    edited: match row.get::<_, Option<String>>(10)? {
                        Some(text) => {
                            Some(arguments(text, row.get::<_, Option<bool>>(11)? == Some(true), at)?)
                        }
                        None => None,
                    },
                    settled_by: word(row, 12, at)?,
                    answered: time_of(row, 13)?,
                    links: match row.get::<_, Option<String>>(14)? {
                        Some(links) => at.json(&links)?,
                        None => Vec::new(),
                    },
                }),
            };
            Ok(QuestionRow {
                request: word(row, 0, at)?,
                digest: word(row, 1, at)?,
                arguments: value(row, 2, at)?,
                shares: row.get::<_, Option<String>>(3)?.map(|it| at.word(&it)).transpose()?,
                expires_in: Duration::from_millis(number(row, 4, at)?),
                asked: time_of(row, 5)?,
                answer,
            })
        })
    }
}

/// What of an attempt has no column of its own.
#[derive(Deserialize)]
struct Facts {
    is_repeatable: bool,
    is_recursive: bool,
    cost: Option<u64>,
    sandbox: Sandbox,
}

/// The same of an end.
#[derive(Deserialize)]
struct Ending {
    routing: Routing,
    run: u32,
    cancel_requested: bool,
    queued_us: u64,
    ran_us: u64,
}

/// The same of a call.
#[derive(Deserialize, Default)]
struct More {
    provider_id: Option<Arc<str>>,
    timeout: Option<Timeout>,
    deadline_us: Option<u64>,
    passthrough: Option<Box<Map<String, Value>>>,
}

#[derive(Deserialize)]
struct Timeout {
    us: u64,
    of_call: bool,
}

fn call(row: &Row<'_>, at: At<'_>) -> Result<Call, Fault> {
    let (id, tool, text): (String, String, String) = (row.get(2)?, row.get(3)?, row.get(4)?);
    let more = match row.get::<_, Option<String>>(7)? {
        Some(more) => at.json(&more)?,
        None => More::default(),
    };
    let mut call = Call::with_arguments(id, tool, arguments(text, row.get(5)?, at)?);
    call.idempotency_key = row.get::<_, Option<String>>(6)?.map(Into::into);
    call.provider_id = more.provider_id;
    call.timeout = more.timeout.map(|Timeout { us, of_call }| match of_call {
        true => CallTimeout::of_call(Duration::from_micros(us)),
        false => CallTimeout::of_attempt(Duration::from_micros(us)),
    });
    call.deadline = more.deadline_us.map(Duration::from_micros);
    call.passthrough = more.passthrough;
    Ok(call)
}

fn arguments(text: String, is_text: bool, at: At<'_>) -> Result<Arguments, Fault> {
    Ok(match is_text {
        true => Arguments::Text(text.into()),
        false => Arguments::Json(Arc::new(at.json(&text)?)),
    })
}

fn end(row: &Row<'_>, at: At<'_>) -> Result<Option<EndRow>, Fault> {
    let Some(ended) = row.get::<_, Option<i64>>(8)? else { return Ok(None) };
    let code = row.get::<_, Option<String>>(10)?.map(|code| at.word(&code)).transpose()?;
    let text: String = row.get(9)?;
    let ending: Ending = value(row, 11, at)?;
    Ok(Some(EndRow {
        status: status(&text, code, at)?,
        attempts: Vec::new(),
        started: number(row, 13, at)?,
        dedupe: word(row, 12, at)?,
        routing: ending.routing,
        run: ending.run,
        sandbox: word(row, 14, at)?,
        cancel_requested: ending.cancel_requested,
        queued: Duration::from_micros(ending.queued_us),
        ran: Duration::from_micros(ending.ran_us),
        ended: time(ended),
    }))
}

fn status(text: &str, code: Option<ErrorKind>, at: At<'_>) -> Result<Result<ToolOutput, CallError>, Fault> {
    Ok(match code {
        None => Ok(at.json(text)?),
        Some(_) => Err(at.json(text)?),
    })
}

/// The status of an attempt has no code beside it: only errors have one in them.
fn attempt_end(row: &Row<'_>, at: At<'_>) -> Result<Option<AttemptRowEnd>, Fault> {
    let Some(ended) = row.get::<_, Option<i64>>(9)? else { return Ok(None) };
    let text: String = row.get(10)?;
    let stored: Value = at.json(&text)?;
    let code = stored.get("code").map(|code| at.json(&code.to_string())).transpose()?;
    let status = status(&text, code, at)?;
    Ok(Some(AttemptRowEnd { status, is_retried: row.get(11)?, ended: time(ended) }))
}

fn verdict(row: &Row<'_>, at: At<'_>) -> Result<Option<Verdict>, Fault> {
    let found: (Option<String>, Option<String>) = (row.get(15)?, row.get(16)?);
    Ok(match (found.0.as_deref(), found.1) {
        (None, _) => None,
        (Some("done"), Some(output)) => Some(Verdict::Done(at.json(&output)?)),
        (Some("not_done"), None) => Some(Verdict::NotDone),
        (Some("unknown"), None) => Some(Verdict::Unknown),
        (Some(other), _) => return Err(at.wrong(format!("a verdict is '{other}'")).into()),
    })
}
