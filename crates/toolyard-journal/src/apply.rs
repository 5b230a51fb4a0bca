//! What each record does to the tables, within the transaction of its group.

use crate::{
    epoch::EpochId,
    op::{AnswerOp, AttemptOp, BatchOp, CancelOp, EndOp, Op, Place, QuestionOp, whole},
    schema::PLACES,
};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;
use std::collections::HashMap;
use toolyard::{Call, SessionId, TimeoutScope};

/// Why a record is not applied.
pub(crate) enum Fault {
    /// It belongs to nothing that is here; others of its group are applied.
    Refused(String),
    /// SQLite says no.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

type Done = Result<(), Fault>;

/// How many rows are remembered, at most.
const REMEMBERED: usize = 4096;

/// The rows of sessions and batches that were used last, so that not every record looks for them.
#[derive(Default)]
pub(crate) struct Ids {
    sessions: HashMap<SessionId, i64>,
    batches: HashMap<(SessionId, u64), i64>,
}

impl Ids {
    /// Forgets all: a transaction has made rows and was rolled back.
    pub(crate) fn clear(&mut self) {
        self.sessions.clear();
        self.batches.clear();
    }

    fn keep_session(&mut self, session: &SessionId, row: i64) {
        if self.sessions.len() >= REMEMBERED {
            self.sessions.clear();
        }
        self.sessions.insert(session.clone(), row);
    }

    fn keep_batch(&mut self, session: &SessionId, batch: u64, row: i64) {
        if self.batches.len() >= REMEMBERED {
            self.batches.clear();
        }
        self.batches.insert((session.clone(), batch), row);
    }
}

/// Applies a record of this epoch at this time.
pub(crate) fn apply(db: &Connection, epoch: EpochId, ids: &mut Ids, op: &Op, now: i64) -> Done {
    let mut to = Tables { db, epoch, ids, now };
    match op {
        Op::Engine { epoch } => {
            to.run("UPDATE epoch_rows SET engine = ?2 WHERE id = ?1", params![to.epoch.0, epoch])
        }
        Op::Session { session, is_named, terms } => to.session(session, *is_named, terms),
        Op::Fork { session, agent, parent, is_named, made_by, terms } => {
            let row = to.session_row(session)?;
            let made_by = made_by.as_ref().map(|call| to.call_row(call)).transpose()?;
            to.run(
                "INSERT INTO fork_rows (session, agent, parent, is_named, made_by, terms, made_ms)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![row, agent.as_str(), parent.as_str(), is_named, made_by, terms, now],
            )
        }
        Op::Batch(batch) => to.batch(batch),
        Op::Pushed { session, batch, index, calls } => {
            let row = to.batch_row(session, *batch)?;
            to.calls(row, *index, calls)
        }
        Op::Closed { session, batch, calls } => {
            let row = to.batch_row(session, *batch)?;
            to.run("UPDATE batch_rows SET calls = ?2 WHERE id = ?1", params![row, calls])
        }
        Op::Question(question) => to.question(question),
        Op::Answer(answer) => to.answer(answer),
        Op::Attempt(attempt) => to.attempt(attempt),
        Op::AttemptEnded { call, attempt, status, is_retried } => {
            let row = to.call_row(call)?;
            to.change(
                "UPDATE attempt_rows SET ended_ms = ?3, status = ?4, is_retried = ?5 WHERE call = ?1 AND number = ?2",
                params![row, attempt, now, status.text, is_retried],
            )
        }
        Op::Ended(end) => to.ended(end),
        Op::Cancelled { session, agent, what } => to.cancelled(session, agent.as_str(), what),
        Op::Verdict { call, found, output } => {
            let row = to.earlier_call_row(call)?;
            to.run(
                "INSERT OR REPLACE INTO verdict_rows (call, epoch, found, output, found_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![row, to.epoch.0, found, output, now],
            )
        }
    }
}

struct Tables<'a> {
    db: &'a Connection,
    epoch: EpochId,
    ids: &'a mut Ids,
    now: i64,
}

impl Tables<'_> {
    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Done {
        self.db.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// Changes a row, which must be there.
    fn change(&self, sql: &str, values: impl rusqlite::Params) -> Done {
        match self.db.prepare_cached(sql)?.execute(values)? {
            0 => Err(Fault::Refused(
                "what the record completes is not in the journal, or is complete".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    fn session(&mut self, session: &SessionId, is_named: bool, terms: &str) -> Done {
        self.run(
            "INSERT INTO session_rows (epoch, name, is_named, terms, opened_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![self.epoch.0, session.as_str(), is_named, terms, self.now],
        )?;
        self.ids.keep_session(session, self.db.last_insert_rowid());
        Ok(())
    }

    /// The row of a session of this epoch: of several of its name the last.
    fn session_row(&mut self, session: &SessionId) -> Result<i64, Fault> {
        if let Some(row) = self.ids.sessions.get(session) {
            return Ok(*row);
        }
        let sql = "SELECT id FROM session_rows WHERE name = ?1 AND epoch = ?2 ORDER BY id DESC LIMIT 1";
        let found = self.db.prepare_cached(sql)?;
        let row =
            { found }.query_row(params![session.as_str(), self.epoch.0], |row| row.get(0)).optional()?;
        let row =
            row.ok_or_else(|| Fault::Refused(format!("the session {session} is not in the journal")))?;
        self.ids.keep_session(session, row);
        Ok(row)
    }

    fn batch(&mut self, batch: &BatchOp) -> Done {
        let session = self.session_row(&batch.session)?;
        let parent = batch.parent.as_ref().map(|call| self.call_row(call)).transpose()?;
        // Before there is a row of the batch: one that its calls do not fit into is refused as a whole.
        row_of(0, u32::try_from(batch.calls.len()).unwrap_or(u32::MAX))?;
        let calls = (!batch.is_open).then_some(batch.calls.len());
        self.run(
            "INSERT INTO batch_rows (session, agent, turn, number, request, parent, is_sequential, calls, arrived_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                session,
                batch.agent.as_str(),
                whole(batch.turn),
                whole(batch.batch),
                batch.request,
                parent,
                batch.is_sequential,
                calls.map(whole),
                self.now,
            ],
        )?;
        let row = self.db.last_insert_rowid();
        self.ids.keep_batch(&batch.session, batch.batch, row);
        self.calls(row, 0, &batch.calls)
    }

    /// The row of a batch of this epoch: of several of its number, in sessions of one name, the last.
    fn batch_row(&mut self, session: &SessionId, batch: u64) -> Result<i64, Fault> {
        if let Some(row) = self.ids.batches.get(&(session.clone(), batch)) {
            return Ok(*row);
        }
        let sql = "SELECT b.id FROM batch_rows b JOIN session_rows s ON s.id = b.session
                   WHERE s.name = ?1 AND s.epoch = ?2 AND b.number = ?3 ORDER BY b.id DESC LIMIT 1";
        let mut found = self.db.prepare_cached(sql)?;
        let values = params![session.as_str(), self.epoch.0, whole(batch)];
        let row = found.query_row(values, |row| row.get(0)).optional()?;
        let row = row.ok_or_else(|| {
            Fault::Refused(format!("batch {batch} of the session {session} is not in the journal"))
        })?;
        self.ids.keep_batch(session, batch, row);
        Ok(row)
    }

    fn call_row(&mut self, call: &Place) -> Result<i64, Fault> {
        row_of(self.batch_row(&call.session, call.batch)?, call.index)
    }

    /// The row of a call that an earlier epoch has left open.
    fn earlier_call_row(&self, call: &Place) -> Result<i64, Fault> {
        let sql = "SELECT c.id FROM session_rows s JOIN batch_rows b ON b.session = s.id JOIN call_rows c ON c.batch = b.id
                   WHERE s.name = ?1 AND s.epoch < ?2 AND b.number = ?3 AND c.place = ?4 AND c.call_id = ?5
                   AND b.turn = ?6 AND b.agent = ?7 AND c.ended_ms IS NULL LIMIT 2";
        let values = params![
            call.session.as_str(),
            self.epoch.0,
            whole(call.batch),
            call.index,
            call.call_id.as_str(),
            whole(call.turn),
            call.agent.as_str()
        ];
        let mut earlier = self.db.prepare_cached(sql)?;
        let found: Vec<i64> = earlier.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?;
        match *found {
            [one] => Ok(one),
            [] => Err(Fault::Refused(format!("no earlier epoch has left the call {} open", call.call_id))),
            _ => Err(Fault::Refused(format!(
                "more than one earlier epoch has left a call {} open at this place: a verdict cannot say which",
                call.call_id
            ))),
        }
    }

    fn calls(&self, batch: i64, first: u32, calls: &[Call]) -> Done {
        let sql = "INSERT INTO call_rows (id, batch, place, call_id, tool, arguments, is_text, key, more, arrived_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
        let mut insert = self.db.prepare_cached(sql)?;
        for (place, call) in (first..).zip(calls) {
            insert.execute(params![
                row_of(batch, place)?,
                batch,
                place,
                call.id.as_str(),
                call.name.as_ref(),
                call.arguments.text(),
                matches!(call.arguments, toolyard::Arguments::Text(_)),
                call.idempotency_key.as_deref(),
                more(call),
                self.now,
            ])?;
        }
        Ok(())
    }

    fn question(&mut self, question: &QuestionOp) -> Done {
        let row = self.call_row(&question.call)?;
        let QuestionOp { request, digest, arguments, shares, expires_ms, .. } = question;
        self.run(
            "INSERT OR REPLACE INTO question_rows (call, request, digest, arguments, shares, expires_ms, asked_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![row, request, digest, arguments, shares, expires_ms, self.now],
        )
    }

    fn answer(&mut self, answer: &AnswerOp) -> Done {
        let row = self.call_row(&answer.call)?;
        let AnswerOp { request, digest, decision, who, reason, edited, settled_by, .. } = answer;
        let is_text = edited.as_ref().map(|edited| matches!(edited, toolyard::Arguments::Text(_)));
        let edited = edited.as_ref().map(toolyard::Arguments::text);
        self.run(
            "INSERT OR REPLACE INTO answer_rows
             (call, request, digest, decision, who, reason, edited, edited_is_text, settled_by, answered_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![row, request, digest, decision, who, reason, edited, is_text, settled_by, self.now],
        )
    }

    /// The arguments are left out if they are those that the call came with.
    fn attempt(&mut self, attempt: &AttemptOp) -> Done {
        let row = self.call_row(&attempt.call)?;
        let AttemptOp { version, side_effects, arguments, approval, digest, timeout_ms, facts, .. } = attempt;
        self.run(
            "INSERT INTO attempt_rows
             (call, number, version, side_effects, arguments, approval, digest, timeout_ms, facts, started_ms)
             VALUES (?1, ?2, ?3, ?4, nullif(?5, (SELECT arguments FROM call_rows WHERE id = ?1)), ?6, ?7, ?8, ?9, ?10)",
            params![
                row,
                attempt.attempt,
                version,
                side_effects,
                arguments,
                approval,
                digest,
                timeout_ms,
                facts,
                self.now
            ],
        )
    }

    fn ended(&mut self, end: &EndOp) -> Done {
        let row = self.call_row(&end.call)?;
        self.change(
            "UPDATE call_rows SET ended_ms = ?2, status = ?3, code = ?4, ending = ?5, dedupe = ?6, attempts = ?7,
             sandbox = ?8, was_waited_for = ?9 WHERE id = ?1 AND ended_ms IS NULL",
            params![
                row,
                self.now,
                end.status.text,
                end.status.code.map(|code| crate::op::word(&code)),
                end.ending,
                end.dedupe,
                end.attempts,
                end.sandbox,
                end.was_waited_for,
            ],
        )
    }

    fn cancelled(&mut self, session: &SessionId, agent: &str, what: &CancelOp) -> Done {
        let row = self.session_row(session)?;
        let (what, turn, batch, place, call_id) = match what {
            CancelOp::Session => ("session", None, None, None, None),
            CancelOp::InFlight => ("in_flight", None, None, None, None),
            CancelOp::Turn(turn) => ("turn", Some(*turn), None, None, None),
            CancelOp::Batch(batch) => ("batch", None, Some(*batch), None, None),
            CancelOp::Calls { turn, id } => ("calls", *turn, None, None, Some(id)),
            CancelOp::Call { turn, batch, index } => ("call", Some(*turn), Some(*batch), Some(*index), None),
        };
        let (turn, batch) = (turn.map(whole), batch.map(whole));
        self.run(
            "INSERT INTO cancel_rows (session, agent, what, turn, batch, place, call_id, given_ms)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![row, agent, what, turn, batch, place, call_id, self.now],
        )
    }
}

/// The number of a call's row.
fn row_of(batch: i64, place: u32) -> Result<i64, Fault> {
    let place = i64::from(place);
    let row = batch.checked_mul(PLACES).filter(|_| place < PLACES).and_then(|first| first.checked_add(place));
    row.ok_or_else(|| Fault::Refused(format!("a batch in the journal has at most {PLACES} calls")))
}

/// What most calls do not have, as JSON.
fn more(call: &Call) -> Option<String> {
    let is_plain = call.provider_id.is_none()
        && call.timeout.is_none()
        && call.deadline.is_none()
        && call.passthrough.is_none();
    let timeout = call.timeout.map(|timeout| {
        let of_call = timeout.scope() == TimeoutScope::Call;
        json!({"us": whole(timeout.duration().as_micros()), "of_call": of_call})
    });
    let more = || {
        json!({
            "provider_id": call.provider_id,
            "timeout": timeout,
            "deadline_us": call.deadline.map(|deadline| whole(deadline.as_micros())),
            "passthrough": call.passthrough,
        })
    };
    (!is_plain).then(|| more().to_string())
}
