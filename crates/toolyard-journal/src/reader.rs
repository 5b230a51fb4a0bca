//! Reading a journal: beside its writer, and after a crash.

mod calls;
mod export;
mod gaps;
mod rows;
mod started;
mod turns;
pub(crate) mod values;

pub use gaps::Gap;
pub use rows::{
    AnswerRow, AttemptRow, AttemptRowEnd, BatchRow, CallRow, CallState, CancelRow, EndRow, EpochRow, ForkRow,
    OpenTurn, QuestionRow, SessionRow, Turn, Verdict,
};
pub use started::StartedCall;
pub use turns::{OpenQuestion, TurnRow, Which};

use crate::{error::JournalError, listing::with_turn, op::whole, schema};
use rusqlite::{Connection, OpenFlags, Row, params};
use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};
use values::{At, agent, maybe, number, time_of, value};

/// A journal that is open for reading, whoever writes it meanwhile (JR-4). What one call of a method returns is of one
/// moment.
///
/// # Examples
/// See [`Journal`](crate::Journal).
pub struct Reader {
    db: Connection,
    path: PathBuf,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Opens the connection that reads.
pub(crate) fn connect(path: &Path) -> Result<Connection, JournalError> {
    let failed = || JournalError::sqlite(path, "opening the journal for reading");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(failed())?;
    db.busy_timeout(Duration::from_secs(5)).map_err(failed())?;
    schema::keep_plans(&db).map_err(failed())?;
    schema::check(&db, path)?;
    Ok(db)
}

impl Reader {
    /// Opens the journal in this file.
    ///
    /// # Errors
    /// [`JournalError`]: the file is not there, is none of a journal, is newer or damaged.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = path.as_ref();
        Ok(Self { db: connect(path)?, path: path.to_owned() })
    }

    /// Its epochs, the oldest first.
    ///
    /// # Errors
    /// [`JournalError`] if the file cannot be read, or has what makes no sense.
    pub fn epochs(&self) -> Result<Vec<EpochRow>, JournalError> {
        let sql =
            "SELECT id, engine, boot_id, pid, durability, started_ms, ended_ms FROM epoch_rows ORDER BY id";
        self.rows(sql, [], |row, at| {
            let durability: String = row.get(4)?;
            Ok(EpochRow {
                epoch: row.get(0)?,
                engine: row.get(1)?,
                boot_id: row.get(2)?,
                pid: number(row, 3, at)?,
                durability: at.word(&durability)?,
                started: time_of(row, 5)?,
                ended: row.get::<_, Option<i64>>(6)?.map(crate::stamp::time),
            })
        })
    }

    /// The sessions that were opened, the first first; those of one name once for each opening.
    ///
    /// # Errors
    /// As for [`epochs`](Self::epochs).
    pub fn sessions(&self) -> Result<Vec<SessionRow>, JournalError> {
        let _snapshot = self.snapshot()?;
        let sql = "SELECT id, epoch, name, is_named, terms, opened_ms FROM session_rows ORDER BY id";
        let mut all = self.rows(sql, [], |row, at| {
            let session = SessionRow {
                epoch: row.get(1)?,
                session: row.get::<_, String>(2)?.into(),
                is_named: row.get(3)?,
                terms: value(row, 4, at)?,
                opened: time_of(row, 5)?,
                forks: Vec::new(),
            };
            Ok((row.get::<_, i64>(0)?, session))
        })?;
        for (id, session) in &mut all {
            session.forks = self.forks(*id)?;
        }
        Ok(all.into_iter().map(|(_, session)| session).collect())
    }

    fn forks(&self, session: i64) -> Result<Vec<ForkRow>, JournalError> {
        let sql =
            "SELECT agent, parent, is_named, terms, made_ms FROM fork_rows WHERE session = ?1 ORDER BY id";
        self.rows(sql, [session], |row, at| {
            Ok(ForkRow {
                agent: agent(row, 0)?,
                parent: agent(row, 1)?,
                is_named: row.get(2)?,
                terms: value(row, 3, at)?,
                made: time_of(row, 4)?,
            })
        })
    }

    /// The turns that are open, the oldest first: with calls that have not ended, or a batch whose input has not; also
    /// those that were cancelled. What handlers have dispatched belongs to the turn of their call, and is none of
    /// its own if another agent makes it. Those of the epoch that is being written are among them.
    ///
    /// # Errors
    /// As for [`epochs`](Self::epochs).
    pub fn open_turns(&self) -> Result<Vec<OpenTurn>, JournalError> {
        let sql = "
            WITH open AS (SELECT batch AS id, count(*) AS calls FROM call_rows INDEXED BY call_open
                              WHERE ended_ms IS NULL GROUP BY batch + 0
                          UNION ALL SELECT id, 0 FROM batch_rows WHERE calls IS NULL
                              AND NOT EXISTS (SELECT 1 FROM call_rows c WHERE c.batch = batch_rows.id AND c.ended_ms IS NULL))
            SELECT s.epoch, s.name, b.agent, b.turn, sum(open.calls)
            FROM open JOIN batch_rows b ON b.id = open.id JOIN session_rows s ON s.id = b.session
            GROUP BY b.session, b.turn, b.agent HAVING count(*) > count(b.parent) ORDER BY min(b.id)";
        self.rows(sql, [], |row, at| {
            Ok(OpenTurn {
                epoch: row.get(0)?,
                session: row.get::<_, String>(1)?.into(),
                agent: agent(row, 2)?,
                turn: number(row, 3, at)?,
                open_calls: number(row, 4, at)?,
            })
        })
    }

    /// The turn of this number of the session that was opened last under this name, and has one; `None` if none has. Of a name
    /// that somebody has given, all that any opening has of the turn.
    ///
    /// # Errors
    /// As for [`epochs`](Self::epochs).
    pub fn turn(&self, session: &str, turn: u64) -> Result<Option<Turn>, JournalError> {
        Ok(self.found_turn(None, session, turn)?.map(|(turn, _)| turn))
    }

    /// The same of the sessions that were opened in this epoch.
    ///
    /// # Errors
    /// As for [`epochs`](Self::epochs).
    pub fn turn_of(&self, epoch: i64, session: &str, turn: u64) -> Result<Option<Turn>, JournalError> {
        Ok(self.found_turn(Some(epoch), session, turn)?.map(|(turn, _)| turn))
    }

    /// The turn, and the first epoch that has something of it.
    pub(crate) fn found_turn(
        &self,
        epoch: Option<i64>,
        session: &str,
        turn: u64,
    ) -> Result<Option<(Turn, i64)>, JournalError> {
        let _snapshot = self.snapshot()?;
        let sql = format!(
            "SELECT s.id, s.epoch, s.is_named FROM session_rows s WHERE s.name = ?1 AND (?3 IS NULL OR s.epoch = ?3)
             AND s.id IN ({}) ORDER BY s.id DESC",
            with_turn("?1", "?2")
        );
        let values = params![session, whole(turn), epoch];
        let mut all: Vec<(i64, i64, bool)> =
            self.rows(&sql, values, |row, _| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let Some(&(_, newest, is_named)) = all.first() else { return Ok(None) };
        // Others of the name of one that nobody has named are not the same session, and of those of one epoch the last is it.
        all.retain(|(.., also_named)| *also_named == is_named);
        all.dedup_by_key(|(_, epoch, _)| *epoch);
        if !is_named {
            all.truncate(1);
        }
        let first = all.last().map_or(newest, |(_, epoch, _)| *epoch);
        let (mut batches, mut cancels) = (Vec::new(), Vec::new());
        for &(id, ..) in all.iter().rev() {
            batches.extend(self.batches(id, turn)?);
            cancels.extend(self.cancels(id)?);
        }
        if all.len() > 1 {
            batches.sort_by_key(|batch| batch.batch);
        }
        Ok(Some((Turn { epoch: newest, session: session.into(), turn, batches, cancels }, first)))
    }

    fn cancels(&self, session: i64) -> Result<Vec<CancelRow>, JournalError> {
        let sql =
            "SELECT agent, what, turn, batch, place, call_id FROM cancel_rows WHERE session = ?1 ORDER BY id";
        self.rows(sql, [session], |row, at| {
            let (what, call_id): (String, Option<String>) = (row.get(1)?, row.get(5)?);
            let (turn, batch) = (maybe(row, 2, at)?, maybe(row, 3, at)?);
            let place = maybe(row, 4, at)?;
            let agent = agent(row, 0)?;
            Ok(match (what.as_str(), turn, batch, place, call_id) {
                ("session", ..) => CancelRow::Session { agent },
                ("in_flight", ..) => CancelRow::InFlight { agent },
                ("turn", Some(turn), ..) => CancelRow::Turn { agent, turn },
                ("batch", _, Some(batch), ..) => CancelRow::Batch { agent, batch },
                ("calls", turn, _, _, Some(id)) => CancelRow::Calls { agent, turn, id: id.into() },
                ("call", Some(turn), Some(batch), Some(place), _) => {
                    CancelRow::Call { agent, turn, batch, place }
                }
                _ => return Err(at.wrong(format!("a cancel of '{what}' lacks what it cancels")).into()),
            })
        })
    }

    /// Everything that is read while this lives is of one moment.
    pub(crate) fn snapshot(&self) -> Result<rusqlite::Transaction<'_>, JournalError> {
        self.db.unchecked_transaction().map_err(self.failed())
    }

    fn failed(&self) -> impl FnOnce(rusqlite::Error) -> JournalError {
        JournalError::sqlite(&self.path, "reading the journal")
    }

    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        values: impl rusqlite::Params,
        read: impl Fn(&Row<'_>, At<'_>) -> Result<T, values::Fault>,
    ) -> Result<Vec<T>, JournalError> {
        let at = At(&self.path);
        let mut query = self.db.prepare_cached(sql).map_err(self.failed())?;
        let mut rows = query.query(values).map_err(self.failed())?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(self.failed())? {
            all.push(read(row, at).map_err(|fault| fault.at(&self.path))?);
        }
        Ok(all)
    }
}
