//! Records about rows of earlier epochs, which no engine of this one has made.

use super::{Done, Fault, Tables};
use crate::{
    listing::of_name,
    op::{AnswerOp, whole},
};
use rusqlite::{OptionalExtension, params};

/// The calls of a named session that have a key: their caller's, or the one that their tool has derived.
fn of_key() -> String {
    format!(
        "batch IN (SELECT b.id FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             WHERE b.id IN ({}) AND s.is_named)
         AND (key = ?2 OR EXISTS (SELECT 1 FROM attempt_rows a
             WHERE a.call = call_rows.id AND a.key = ?2))",
        of_name("?1")
    )
}

impl Tables<'_> {
    /// Changes something of a call that an earlier epoch has left open, found by a question about it.
    pub(super) fn on_asked(
        &mut self,
        answer: &AnswerOp,
        change: impl Fn(&mut Self, i64) -> rusqlite::Result<usize>,
    ) -> Done {
        let sql = format!(
            "SELECT c.id FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             CROSS JOIN call_rows c ON c.batch = b.id JOIN question_rows q ON q.call = c.id WHERE b.id IN ({})
             AND s.epoch < ?2 AND b.number = ?3 AND c.place = ?4 AND q.request = ?5 AND c.ended_ms IS NULL LIMIT 1",
            of_name("?1")
        );
        let call = &answer.call;
        let (session, batch) = (call.session.as_str(), whole(call.batch));
        let mut asked = self.db.prepare_cached(&sql)?;
        let values = params![session, self.epoch.0, batch, call.index, answer.request];
        let row = asked.query_row(values, |row| row.get(0)).optional()?;
        match row {
            Some(row) if change(self, row)? > 0 => Ok(()),
            _ => Err(Fault::Refused(format!("no open call has the question {}", answer.request))),
        }
    }

    /// Releases the keys of calls that have ended. Of one that has not, nobody knows what a second one would do twice.
    pub(super) fn forget(&self, session: &str, key: &str) -> Done {
        let (values, of_key) = (params![session, key], of_key());
        let open = format!("SELECT call_id FROM call_rows WHERE {of_key} AND ended_ms IS NULL LIMIT 1");
        let open: Option<String> =
            self.db.prepare_cached(&open)?.query_row(values, |row| row.get(0)).optional()?;
        if let Some(call) = open {
            let why =
                format!("the call {call} of this key has not ended: resume its turn, or cancel it, first");
            return Err(Fault::Refused(why));
        }
        let release =
            format!("UPDATE call_rows SET key_released_ms = ?3 WHERE {of_key} AND key_released_ms IS NULL");
        match self.db.prepare_cached(&release)?.execute(params![session, key, self.now])? {
            0 => Err(Fault::Refused(format!(
                "no session that somebody has named {session} has a call with the key {key}, or it was released before"
            ))),
            _ => Ok(()),
        }
    }
}
