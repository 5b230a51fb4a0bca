//! The statements that nearly every record needs: got once for all records of a group.

use rusqlite::{CachedStatement, Connection};

/// One of them, by what it writes.
#[derive(Clone, Copy)]
pub(super) enum Writes {
    /// A batch is there.
    Batch,
    /// A call of it is.
    Call,
    /// A call is started. What another attempt has the number of, or whose call is not there, changes nothing, and the arguments
    /// are left out if they are those that the call came with.
    ///
    /// `OR IGNORE` with one row: SQLite keeps copies of all pages that a statement changes if it may fail after some of its rows.
    Attempt,
    /// A call has ended.
    End,
}

const SQL: [&str; Writes::End as usize + 1] = [
    "INSERT INTO batch_rows (session, agent, turn, number, request, parent, is_sequential, calls, arrived_ms, is_resend)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    "INSERT INTO call_rows (id, batch, place, call_id, tool, arguments, is_text, key, more, arrived_ms)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    "INSERT OR IGNORE INTO attempt_rows
     (call, number, version, side_effects, arguments, key, approval, digest, timeout_ms, facts, started_ms)
     VALUES ((SELECT id FROM call_rows WHERE id = ?1 AND call_id = ?2), ?3, ?4, ?5,
         CASE WHEN ?6 IS NOT NULL THEN nullif(?6, (SELECT arguments FROM call_rows WHERE id = ?1)) END,
         ?7, ?8, ?9, ?10, ?11, ?12)",
    "UPDATE call_rows SET ended_ms = ?3, status = ?4, code = ?5, ending = ?6, dedupe = ?7, attempts = ?8, sandbox = ?9,
     was_waited_for = ?10 WHERE id = ?1 AND call_id = ?2 AND ended_ms IS NULL",
];

/// Those that the records of a group have needed so far.
#[derive(Default)]
pub(super) struct Often<'a>([Option<CachedStatement<'a>>; SQL.len()]);

impl<'a> Often<'a> {
    /// The statement that writes this.
    pub(super) fn get(
        &mut self,
        db: &'a Connection,
        what: Writes,
    ) -> rusqlite::Result<&mut CachedStatement<'a>> {
        match &mut self.0[what as usize] {
            Some(statement) => Ok(statement),
            none => Ok(none.insert(db.prepare_cached(SQL[what as usize])?)),
        }
    }
}
