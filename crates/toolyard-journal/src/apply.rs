//! What each record does to the tables, within the transaction of its group.

mod cancel;
mod earlier;
mod ids;
mod often;
mod resumed;

pub(crate) use ids::Ids;
pub(crate) use resumed::{Ends, end_open};

use crate::{
    epoch::EpochId,
    listing::{list, of_name_and_turn},
    op::{AnswerOp, AttemptOp, BatchOp, End, Op, OpenBatch, Place, QuestionOp, json_of, whole, word},
    schema::PLACES,
};
use often::{Often, Writes};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;
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

/// The tables, and what is known of them, while the records of a group are applied.
pub(crate) struct Tables<'a> {
    db: &'a Connection,
    epoch: EpochId,
    ids: &'a mut Ids,
    often: Often<'a>,
    now: i64,
}

impl<'a> Tables<'a> {
    /// Those of this connection, in which a transaction has begun, for records of this epoch.
    pub(crate) fn new(db: &'a Connection, epoch: EpochId, ids: &'a mut Ids) -> Self {
        Self { db, epoch, ids, often: Often::default(), now: 0 }
    }

    /// What is applied from now on is given at this time.
    pub(crate) fn at(&mut self, now: i64) {
        self.now = now;
    }

    /// Applies a record.
    pub(crate) fn apply(&mut self, op: &Op) -> Done {
        match op {
            Op::Engine { epoch } => {
                self.run("UPDATE epoch_rows SET engine = ?2 WHERE id = ?1", params![self.epoch.0, epoch])
            }
            Op::Session { session, is_named, terms } => self.session(session, *is_named, terms),
            Op::Fork { session, agent, parent, is_named, made_by, terms } => {
                let row = self.session_row(session)?;
                let made_by = made_by.as_ref().map(|call| self.call_row(call)).transpose()?;
                self.run(
                    "INSERT INTO fork_rows (session, agent, parent, is_named, made_by, terms, made_ms)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    params![row, agent.as_str(), parent.as_str(), is_named, made_by, terms, self.now],
                )?;
                // What was cancelled as a whole is the last agent of this name: its calls are marked.
                self.run(
                    "UPDATE cancel_rows SET what = 'in_flight' WHERE session = ?1 AND agent = ?2 AND what = 'session'",
                    params![row, agent.as_str()],
                )
            }
            Op::Batch(batch) => self.batch(batch),
            Op::Pushed { to: batch, index, calls } => {
                let row = self.open_batch_row(batch)?;
                self.follows(row, *index)?;
                self.calls(row, *index, calls)
            }
            Op::Closed { batch, calls, request } => {
                let row = self.open_batch_row(batch)?;
                // Those that could not be recorded have ended, and are not among them.
                self.run(
                    "UPDATE batch_rows SET request = ?3, calls = min(?2,
                         (SELECT count(*) FROM call_rows c WHERE c.batch = batch_rows.id)) WHERE id = ?1",
                    params![row, calls, request],
                )
            }
            Op::Question(question) => self.question(question),
            Op::Answer(answer) => self.answer(answer),
            Op::Attempt(attempt) => self.attempt(attempt),
            Op::AttemptEnded { call, attempt, status, is_retried } => {
                let sql =
                    "UPDATE attempt_rows SET ended_ms = ?4, status = ?5, is_retried = ?6 WHERE call = ?1 AND number = ?3
                     AND EXISTS (SELECT 1 FROM call_rows c WHERE c.id = ?1 AND c.call_id = ?2)";
                self.on_call(call, |to, row| {
                    to.count(
                        sql,
                        params![row, call.call_id.as_str(), attempt, to.now, status.text, is_retried],
                    )
                })
            }
            Op::Ended(end) => self.ended(&end.call, &end.end()),
            // The writer applies them one by one, because each may be refused.
            Op::Ends(ends) => ends.try_each(|call, end| self.ended(call, end)),
            Op::Cancelled { session, agent, what } => self.cancelled(session, agent.as_str(), what),
            Op::Resumed(resumed) => self.resumed(resumed),
            Op::Verdict { call, found, output } => {
                let row = self.earlier_call_row(call)?;
                self.run(
                    "INSERT INTO verdict_rows (call, epoch, found, output, found_ms, asked) VALUES (?1, ?2, ?3, ?4, ?5, 1)
                     ON CONFLICT (call) DO UPDATE SET epoch = excluded.epoch, found_ms = excluded.found_ms, asked = asked + 1,
                         output = CASE found WHEN 'done' THEN output ELSE excluded.output END,
                         found = CASE found WHEN 'done' THEN found ELSE excluded.found END",
                    params![row, self.epoch.0, found, output, self.now],
                )
            }
            Op::Forget { session, key } => self.forget(session, key),
        }
    }

    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Done {
        self.db.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    /// How many rows that changes.
    fn count(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.db.prepare_cached(sql)?.execute(values)
    }

    /// Changes something of a call, which must be there. The change compares the call's id with the row: a session that was
    /// opened again under its name, while the last one's calls went on, has batches of the same numbers.
    fn on_call(&mut self, call: &Place, change: impl Fn(&mut Self, i64) -> rusqlite::Result<usize>) -> Done {
        let latest = self.latest_row(call)?;
        if let Some(row) = latest
            && change(self, row)? > 0
        {
            return Ok(());
        }
        match self.exact_row(call)? {
            Some(row) if latest != Some(row) && change(self, row)? > 0 => Ok(()),
            Some(_) => Err(Fault::Refused(
                "what the record completes is not in the journal, or is complete".to_owned(),
            )),
            None => Err(missing(call)),
        }
    }

    fn session(&mut self, session: &SessionId, is_named: bool, terms: &str) -> Done {
        self.run(
            "INSERT INTO session_rows (epoch, name, is_named, terms, opened_ms, after_batch)
             VALUES (?1, ?2, ?3, ?4, ?5, (SELECT coalesce(max(id), 0) FROM batch_rows))",
            params![self.epoch.0, session.as_str(), is_named, terms, self.now],
        )?;
        self.ids.open_session(session, self.db.last_insert_rowid());
        Ok(())
    }

    /// The row of a session of this epoch: of several of its name the last.
    fn session_row(&mut self, session: &SessionId) -> Result<i64, Fault> {
        if let Some(row) = self.ids.session(session) {
            return Ok(row);
        }
        let sql = "SELECT id FROM session_rows WHERE name = ?1 AND epoch = ?2 ORDER BY id DESC LIMIT 1";
        let found = self.db.prepare_cached(sql)?;
        let row =
            { found }.query_row(params![session.as_str(), self.epoch.0], |row| row.get(0)).optional()?;
        let row =
            row.ok_or_else(|| Fault::Refused(format!("the session {session} is not in the journal")))?;
        self.ids.open_session(session, row);
        Ok(row)
    }

    fn batch(&mut self, batch: &BatchOp) -> Done {
        let session = self.session_row(&batch.session)?;
        let parent = batch.parent.as_ref().map(|call| self.call_row(call)).transpose()?;
        // Before there is a row of the batch: one that its calls do not fit into is refused as a whole.
        row_of(0, u32::try_from(batch.calls.len()).unwrap_or(u32::MAX))?;
        let calls = (!batch.is_open).then_some(batch.calls.len());
        self.often.get(self.db, Writes::Batch)?.execute(params![
            session,
            batch.agent.as_str(),
            whole(batch.turn),
            whole(batch.batch),
            batch.request,
            parent,
            batch.is_sequential,
            calls.map(whole),
            self.now,
            batch.is_resend,
        ])?;
        let row = self.db.last_insert_rowid();
        self.ids.keep_batch(session, batch.batch, row);
        if self.ids.is_list_due() {
            list(self.db)?;
            self.ids.are_listed();
        }
        self.calls(row, 0, &batch.calls)
    }

    /// The row of a batch of this epoch whose calls are still coming: of several, in sessions of one name, the last.
    fn open_batch_row(&mut self, of: &OpenBatch) -> Result<i64, Fault> {
        let OpenBatch { session, agent, turn, batch } = of;
        if let Some(latest) = self.ids.batch(session, *batch) {
            let sql = "SELECT EXISTS (SELECT 1 FROM batch_rows
                       WHERE id = ?1 AND turn = ?2 AND agent = ?3 AND calls IS NULL)";
            let values = params![latest, whole(*turn), agent.as_str()];
            if self.db.prepare_cached(sql)?.query_row(values, |row| row.get(0))? {
                return Ok(latest);
            }
        }
        let sql = format!(
            "SELECT b.id FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session WHERE b.id IN ({})
             AND s.epoch = ?2 AND b.number = ?3 AND b.agent = ?5 AND b.calls IS NULL ORDER BY b.id DESC LIMIT 1",
            of_name_and_turn("?1", "?4")
        );
        let values = params![session.as_str(), self.epoch.0, whole(*batch), whole(*turn), agent.as_str()];
        let row = self.db.prepare_cached(&sql)?.query_row(values, |row| row.get(0)).optional()?;
        row.ok_or_else(|| {
            let what = "is not in the journal, or has all its calls";
            Fault::Refused(format!("batch {batch} of the session {session} {what}"))
        })
    }

    /// The row of a call's batch of this epoch: of several of its number, in sessions of one name, the last.
    fn latest_batch(&mut self, call: &Place) -> Result<Option<i64>, Fault> {
        let (session, batch) = (&call.session, call.batch);
        if let Some(row) = self.ids.batch(session, batch) {
            return Ok(Some(row));
        }
        let sql = format!(
            "SELECT b.id, b.session FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             WHERE b.id IN ({}) AND s.epoch = ?2 AND b.number = ?4 ORDER BY b.id DESC LIMIT 1",
            of_name_and_turn("?1", "?3")
        );
        let mut found = self.db.prepare_cached(&sql)?;
        let values = params![session.as_str(), self.epoch.0, whole(call.turn), whole(batch)];
        let found: Option<(i64, i64)> =
            found.query_row(values, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        if let Some((row, of)) = found {
            self.ids.keep_batch(of, batch, row);
        }
        Ok(found.map(|(row, _)| row))
    }

    /// Where the row of a call is, if it is of the session that was opened last under its name. Whether that row has this
    /// call is for whoever uses it to ask.
    fn latest_row(&mut self, call: &Place) -> Result<Option<i64>, Fault> {
        self.latest_batch(call)?.map(|batch| row_of(batch, call.index)).transpose()
    }

    /// The row of exactly this call of this epoch.
    fn exact_row(&self, call: &Place) -> Result<Option<i64>, Fault> {
        let sql = format!(
            "SELECT c.id FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             CROSS JOIN call_rows c ON c.batch = b.id WHERE b.id IN ({}) AND s.epoch = ?2 AND b.number = ?3
             AND c.place = ?4 AND c.call_id = ?5 AND b.agent = ?7 ORDER BY c.id DESC LIMIT 1",
            of_name_and_turn("?1", "?6")
        );
        let Place { session, batch, index, agent, turn, call_id } = call;
        let values = params![
            session.as_str(),
            self.epoch.0,
            whole(*batch),
            index,
            call_id.as_str(),
            whole(*turn),
            agent.as_str()
        ];
        Ok(self.db.prepare_cached(&sql)?.query_row(values, |row| row.get(0)).optional()?)
    }

    /// The row of a call of this epoch.
    fn call_row(&mut self, call: &Place) -> Result<i64, Fault> {
        if let Some(row) = self.latest_row(call)? {
            let sql = "SELECT EXISTS (SELECT 1 FROM call_rows c JOIN batch_rows b ON b.id = c.batch
                       WHERE c.id = ?1 AND c.call_id = ?2 AND b.turn = ?3 AND b.agent = ?4)";
            let values = params![row, call.call_id.as_str(), whole(call.turn), call.agent.as_str()];
            if self.db.prepare_cached(sql)?.query_row(values, |row| row.get(0))? {
                return Ok(row);
            }
        }
        self.exact_row(call)?.ok_or_else(|| missing(call))
    }

    /// The row of a call that an earlier epoch has left open.
    fn earlier_call_row(&self, call: &Place) -> Result<i64, Fault> {
        let sql = format!(
            "SELECT c.id FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             CROSS JOIN call_rows c ON c.batch = b.id WHERE b.id IN ({}) AND s.epoch < ?2 AND b.number = ?3
             AND c.place = ?4 AND c.call_id = ?5 AND b.agent = ?7 AND c.ended_ms IS NULL LIMIT 2",
            of_name_and_turn("?1", "?6")
        );
        let values = params![
            call.session.as_str(),
            self.epoch.0,
            whole(call.batch),
            call.index,
            call.call_id.as_str(),
            whole(call.turn),
            call.agent.as_str()
        ];
        let mut earlier = self.db.prepare_cached(&sql)?;
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

    /// Refuses calls of an open batch that do not follow those which are there: some before them could not be recorded.
    fn follows(&self, batch: i64, first: u32) -> Done {
        let last: Option<i64> = self
            .db
            .prepare_cached("SELECT max(id) FROM call_rows WHERE id >= ?1 AND id < ?2")?
            .query_row([row_of(batch, 0)?, row_of(batch + 1, 0)?], |row| row.get(0))?;
        let next = match last {
            Some(last) => last + 1,
            None => row_of(batch, 0)?,
        };
        if next == row_of(batch, first)? {
            return Ok(());
        }
        Err(Fault::Refused("calls that came before these in their batch are not in the journal".to_owned()))
    }

    fn calls(&mut self, batch: i64, first: u32, calls: &[Call]) -> Done {
        let insert = self.often.get(self.db, Writes::Call)?;
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
        let QuestionOp { call, request, digest, arguments, shares, expires_ms, links } = question;
        let sql = "INSERT OR REPLACE INTO question_rows
             (call, request, digest, arguments, shares, expires_ms, asked_ms, links)
             SELECT id, ?3, ?4, ?5, ?6, ?7, ?8, ?9 FROM call_rows WHERE id = ?1 AND call_id = ?2";
        self.on_call(call, |to, row| {
            let id = call.call_id.as_str();
            to.count(sql, params![row, id, request, digest, arguments, shares, expires_ms, to.now, links])
        })
    }

    fn answer(&mut self, answer: &AnswerOp) -> Done {
        let AnswerOp { call, request, digest, decision, who, reason, edited, settled_by } = answer;
        let is_text = edited.as_ref().map(|edited| matches!(edited, toolyard::Arguments::Text(_)));
        let edited = edited.as_ref().map(toolyard::Arguments::text);
        let sql = "INSERT OR REPLACE INTO answer_rows
             (call, request, digest, decision, who, reason, edited, edited_is_text, settled_by, answered_ms, links)
             SELECT id, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
                 (SELECT q.links FROM question_rows q WHERE q.call = call_rows.id AND q.request = ?3) FROM call_rows WHERE id = ?1 AND call_id = ?2";
        let put = |to: &mut Self, row: i64| {
            let id = call.call_id.as_str();
            let values =
                params![row, id, request, digest, decision, who, reason, edited, is_text, settled_by, to.now];
            to.count(sql, values)
        };
        match self.on_call(call, put) {
            Err(Fault::Refused(_)) => self.on_asked(answer, put),
            given => given,
        }
    }

    /// The arguments are left out if they are those that the call came with.
    fn attempt(&mut self, attempt: &AttemptOp) -> Done {
        let AttemptOp { call, version, side_effects, arguments, key, approval, digest, .. } = attempt;
        let facts = json_of(&attempt.facts);
        self.on_call(call, |to, row| {
            to.often.get(to.db, Writes::Attempt)?.execute(params![
                row,
                call.call_id.as_str(),
                attempt.attempt,
                version,
                side_effects,
                arguments,
                key,
                approval,
                digest,
                attempt.timeout_ms,
                facts,
                to.now
            ])
        })
    }

    /// Applies the end of a call of this epoch.
    pub(crate) fn ended(&mut self, call: &Place, end: &End<'_>) -> Done {
        let (code, ending) = (end.code.map(|code| word(&code)), json_of(&end.ending));
        self.on_call(call, |to, row| {
            to.often.get(to.db, Writes::End)?.execute(params![
                row,
                call.call_id.as_str(),
                to.now,
                &*end.status,
                code,
                ending,
                end.dedupe.shared_as().unwrap_or("fresh"),
                end.attempts,
                end.sandbox.as_str(),
                end.was_waited_for,
            ])
        })
    }
}

fn missing(call: &Place) -> Fault {
    let Place { session, batch, call_id, .. } = call;
    Fault::Refused(format!(
        "the call {call_id} of batch {batch} of the session {session} is not in the journal"
    ))
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

#[cfg(test)]
mod tests;
