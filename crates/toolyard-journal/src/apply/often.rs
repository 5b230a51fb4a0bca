//! The statements that nearly every record needs: got once for all records of a group.

use rusqlite::{CachedStatement, Connection};

/// A batch is there.
pub(super) const BATCH: usize = 0;
/// A call of it is.
pub(super) const CALL: usize = 1;
/// A call is started. What another attempt has the number of, or whose call is not there, changes nothing, and the arguments are
/// left out if they are those that the call came with.
///
/// `OR IGNORE` with one row: SQLite keeps copies of all pages that a statement changes if it may fail after some of its rows.
pub(super) const ATTEMPT: usize = 2;
/// A call has ended.
pub(super) const END: usize = 3;

const SQL: [&str; 4] = [
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
    /// One of the statements above.
    pub(super) fn get(
        &mut self,
        db: &'a Connection,
        which: usize,
    ) -> rusqlite::Result<&mut CachedStatement<'a>> {
        match &mut self.0[which] {
            Some(statement) => Ok(statement),
            none => Ok(none.insert(db.prepare_cached(SQL[which])?)),
        }
    }
}
