//! Whether a journal is whole (JR-12).

use crate::{
    error::JournalError,
    listing,
    reader::connect,
    schema::{VERSION, pragma},
};
use rusqlite::Connection;
use std::{fmt, fs, path::Path};

/// How many findings of a kind are told, at most.
const TOLD: usize = 20;

/// The batches without a session: SQLite is not told what they belong to, because it would want an index of them for that.
const SESSIONLESS: &str =
    "SELECT 1 FROM batch_rows b WHERE NOT EXISTS (SELECT 1 FROM session_rows s WHERE s.id = b.session)";

/// Something that must not be so.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// SQLite finds the file damaged; in its words.
    Damaged(String),
    /// A row belongs to one that is not there.
    Orphan {
        /// The table of the row.
        table: String,
        /// The table of the missing one.
        of: String,
    },
    /// A batch that is closed has another number of calls than were closed with it.
    Calls {
        /// Its session.
        session: String,
        /// The batch.
        batch: i64,
        /// How many it should have.
        expected: i64,
        /// How many it has.
        found: i64,
    },
    /// A batch is not in the list by which those of its session are found: its calls count as if they were not there.
    Unlisted {
        /// Its session.
        session: String,
        /// The batch.
        batch: i64,
    },
    /// What must be true of that list is not, so that batches are not found.
    List {
        /// What it is.
        what: String,
    },
    /// A call that changes something, or has a key, has run and none of its attempts is recorded.
    NoAttempt {
        /// Its session.
        session: String,
        /// Its batch.
        batch: i64,
        /// Its place in it.
        place: i64,
    },
    /// An epoch begins before the one that came before it: the clock was set back, so times mislead.
    Clock {
        /// The epoch.
        epoch: i64,
    },
    /// The file and its own note of its schema's version differ.
    Schema {
        /// The note.
        noted: String,
    },
}

impl Finding {
    /// Whether records may be wrong or missing. A clock that was set back damages none.
    pub const fn is_damage(&self) -> bool {
        !matches!(self, Self::Clock { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged(what) => write!(f, "the file is damaged: {what}"),
            Self::Orphan { table, of } => {
                write!(f, "a row of {table} belongs to one of {of} that is not there")
            }
            Self::Calls { session, batch, expected, found } => {
                write!(f, "batch {batch} of session {session} has {found} calls of {expected}")
            }
            Self::Unlisted { session, batch } => {
                write!(f, "batch {batch} of session {session} is not in the list of its session's batches")
            }
            Self::List { what } => write!(f, "the list of sessions' batches: {what}"),
            Self::NoAttempt { session, batch, place } => {
                write!(
                    f,
                    "call {place} of batch {batch} of session {session} has run, without a recorded attempt"
                )
            }
            Self::Clock { epoch } => write!(f, "the clock was set back before epoch {epoch}"),
            Self::Schema { noted } => write!(f, "the schema's version is {VERSION}, and noted as '{noted}'"),
        }
    }
}

/// What [`verify`] has found: at most 20 of each kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Report {
    /// What must not be so.
    pub findings: Vec<Finding>,
    /// How many calls it has.
    pub calls: u64,
    /// How many of them have not ended.
    pub open_calls: u64,
}

impl Report {
    /// Whether no record is wrong or missing.
    pub fn is_whole(&self) -> bool {
        !self.findings.iter().any(Finding::is_damage)
    }
}

/// Reads a whole journal, also one that is being written, and tells what is wrong with it. Changes nothing.
///
/// # Errors
/// [`JournalError`] if the file is not there, is none of a journal, is newer, or is so damaged that SQLite reads none of it.
///
/// # Examples
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("agent.journal");
/// # toolyard_journal::Journal::open(&path, toolyard_journal::Settings::default())?.close()?;
/// let report = toolyard_journal::verify(&path)?;
/// assert!(report.is_whole() && report.findings.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn verify(path: impl AsRef<Path>) -> Result<Report, JournalError> {
    let path = path.as_ref();
    let db = connect(path)?;
    let failed = || JournalError::sqlite(path, "verifying the journal");
    let tx = db.unchecked_transaction().map_err(failed())?;
    let mut report = Report::default();
    let damage = collect(&tx, "PRAGMA integrity_check", |row| row.get::<_, String>(0)).map_err(failed())?;
    report.findings.extend(damage.into_iter().filter(|line| line != "ok").map(Finding::Damaged));
    // SQLite reads what is missing of a page as zeros.
    let page = pragma(&tx, "page_size").map_err(failed())?.unsigned_abs();
    let bytes = fs::metadata(path).map_err(JournalError::io(path, "asking for its size"))?.len();
    if page == 0 || bytes % page != 0 {
        report.findings.push(Finding::Damaged("it ends within a page".to_owned()));
    }
    // In a damaged file the other questions may have no answer; what it has is told all the same.
    let is_damaged = !report.findings.is_empty();
    match content(&tx, &mut report) {
        Err(error) if is_damaged => report.findings.push(Finding::Damaged(error.to_string())),
        other => other.map_err(failed())?,
    }
    Ok(report)
}

fn content(db: &Connection, report: &mut Report) -> rusqlite::Result<()> {
    let findings = &mut report.findings;
    findings.extend(collect(db, "PRAGMA foreign_key_check", |row| {
        Ok(Finding::Orphan { table: row.get(0)?, of: row.get(2)? })
    })?);
    findings.extend(collect(db, listing::UNKEPT, |row| Ok(Finding::List { what: row.get(0)? }))?);
    findings.extend(collect(db, listing::LACKS, |row| {
        Ok(Finding::Unlisted { session: row.get(0)?, batch: row.get(1)? })
    })?);
    for (sql, table, of) in
        [(SESSIONLESS, "batch_rows", "session_rows"), (listing::STALE, "listed_rows", "batch_rows")]
    {
        let orphan =
            |_: &rusqlite::Row<'_>| Ok(Finding::Orphan { table: table.to_owned(), of: of.to_owned() });
        findings.extend(collect(db, sql, orphan)?);
    }
    let calls = "SELECT s.name, b.number, b.calls, count(c.id) FROM batch_rows b JOIN session_rows s ON s.id = b.session
                 LEFT JOIN call_rows c ON c.batch = b.id WHERE b.calls IS NOT NULL GROUP BY b.id HAVING count(c.id) <> b.calls";
    findings.extend(collect(db, calls, |row| {
        Ok(Finding::Calls {
            session: row.get(0)?,
            batch: row.get(1)?,
            expected: row.get(2)?,
            found: row.get(3)?,
        })
    })?);
    let unattempted = "SELECT s.name, b.number, c.place FROM call_rows c JOIN batch_rows b ON b.id = c.batch
                       JOIN session_rows s ON s.id = b.session WHERE c.attempts > 0 AND c.was_waited_for AND c.dedupe = 'fresh'
                       AND NOT EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = c.id)";
    findings.extend(collect(db, unattempted, |row| {
        Ok(Finding::NoAttempt { session: row.get(0)?, batch: row.get(1)?, place: row.get(2)? })
    })?);
    let clock =
        "SELECT id FROM (SELECT id, started_ms, lag(started_ms) OVER (ORDER BY id) AS before FROM epoch_rows)
                 WHERE started_ms < before";
    findings.extend(collect(db, clock, |row| Ok(Finding::Clock { epoch: row.get(0)? }))?);
    let noted =
        collect(db, "SELECT value FROM meta WHERE name = 'schema_version'", |row| row.get::<_, String>(0))?;
    let noted = noted.into_iter().next().unwrap_or_default();
    if noted != VERSION.to_string() {
        findings.push(Finding::Schema { noted });
    }
    let counts = "SELECT count(*), count(*) - count(ended_ms) FROM call_rows";
    let (calls, open): (i64, i64) = db.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
    (report.calls, report.open_calls) = (calls.unsigned_abs(), open.unsigned_abs());
    Ok(())
}

fn collect<T>(
    db: &Connection,
    sql: &str,
    read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    db.prepare(sql)?.query_map([], read)?.take(TOLD).collect()
}
