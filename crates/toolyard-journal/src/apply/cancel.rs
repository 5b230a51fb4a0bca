//! Cancels: each is a row, and marks the open calls that it reaches (JR-1).
//!
//! A cancel of what is in flight reaches the calls that were given before it and have not ended. After a crash nothing else
//! tells them from those that came later, so they are marked when the cancel is applied, in the order in which records were
//! given. Cancels of a session, a turn and a batch hold for calls to come too: for these their rows are there.

use super::{Done, Tables};
use crate::{
    listing::of_name,
    op::{CancelOp, whole},
    schema::{PLACES, REACHES},
};
use rusqlite::params;
use toolyard::SessionId;

impl Tables<'_> {
    pub(super) fn cancelled(&mut self, session: &SessionId, agent: &str, what: &CancelOp) -> Done {
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
        )?;
        self.mark(self.db.last_insert_rowid())?;
        match (what, agent) {
            ("session", "root") => self.close_earlier(session.as_str()),
            _ => Ok(()),
        }
    }

    /// A session that is cancelled as a whole takes what earlier openings of its name have left open with it: nobody takes that
    /// up any more.
    fn close_earlier(&self, name: &str) -> Done {
        let sql = format!(
            "UPDATE call_rows SET cancelled_ms = ?2 WHERE cancelled_ms IS NULL AND ended_ms IS NULL AND batch IN ({})",
            of_name("?1")
        );
        self.run(&sql, params![name, self.now])
    }

    /// Marks the open calls that this cancel reaches: those of its agent and of the agent's descendants that have what it
    /// names. Of the open calls only those are looked at that are not older than the session.
    fn mark(&self, cancel: i64) -> Done {
        let sql = format!(
            "UPDATE call_rows SET cancelled_ms = ?2 WHERE cancelled_ms IS NULL AND id IN (
                 SELECT c.id FROM cancel_rows k CROSS JOIN call_rows c INDEXED BY call_open
                 CROSS JOIN batch_rows b ON b.id = c.batch
                 WHERE k.id = ?1 AND c.ended_ms IS NULL AND b.session = k.session AND {REACHES}
                 AND c.id >= (SELECT s.after_batch + 1 FROM session_rows s WHERE s.id = k.session) * {PLACES}
                 AND (k.turn IS NULL OR k.turn = b.turn) AND (k.batch IS NULL OR k.batch = b.number)
                 AND (k.place IS NULL OR k.place = c.place) AND (k.call_id IS NULL OR k.call_id = c.call_id))"
        );
        self.run(&sql, params![cancel, self.now])
    }
}
