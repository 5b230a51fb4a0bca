//! The tables of a journal, and the views that others may read.
//!
//! ```text
//!   epoch ◄─ session ◄─ batch ◄─ call ◄─ attempt
//!              ▲  ▲                ▲◄── question, answer, verdict
//!           fork  cancel           └─── its end is in its own row
//! ```
//!
//! A call is one row, made with its batch or push and completed by its end; an attempt is another (JR-2). A session knows
//! the last batch before it (`after_batch`): its own have higher numbers. The newest of a name knows the highest numbers of
//! those that were removed (`removed_turn`, `removed_batch`), which are not given again.
//!
//! With many sessions most of what a commit writes would be pages of an index of sessions, because each session's are
//! elsewhere: the batches of a session are found by a list instead, which is filled many at a time ([`listing`]).

use crate::{error::JournalError, listing, settings::Durability};
use rusqlite::{Connection, config::DbConfig};
use std::path::Path;

/// The version of the schema, in `user_version`.
pub(crate) const VERSION: i64 = 1;
/// What makes a SQLite file a journal: `application_id`, the bytes `Tyjr`.
const APPLICATION: i64 = 0x5479_6a72;

/// The number of a call's row is that of its batch times this, and its place: so it is found without an index.
pub(crate) const PLACES: i64 = 1 << 24;
const _: () = assert!(PLACES == 16_777_216, "the view `batches` has this number");

/// The views that may be read with any SQLite, while a journal is written and afterwards. Their names and columns stay;
/// the tables below them may change. Times are milliseconds since 1970; a column is null where there is nothing to say. A query
/// of the batches of a session, or of what belongs to them, looks through all batches; [`Reader`](crate::Reader) does not.
///
/// | view | a row | columns |
/// |---|---|---|
/// | `sessions` | a session that was opened | `epoch`, `session`, `is_named`, `terms` (JSON), `opened_ms` |
/// | `turns` | a turn of an agent | `epoch`, `session`, `agent`, `turn`, `batches`, `calls`, `open_calls`, `is_open`, `began_ms` |
/// | `calls` | a call | `epoch`, `session`, `agent`, `turn`, `batch`, `place`, `call_id`, `tool`, `arguments` (as sent), `key`, `state` (`not_started`, `attempted`, `ended`), `is_cancelled`, `status` (JSON of the result), `code` (null if it succeeded), `dedupe`, `attempts`, `sandbox`, `arrived_ms`, `ended_ms`, `key_released_ms` |
/// | `attempts` | a start of a handler | `epoch`, `session`, `turn`, `batch`, `place`, `call_id`, `tool`, `attempt`, `version`, `side_effects`, `arguments` (as run), `approval`, `digest`, `timeout_ms`, `started_ms`, `ended_ms`, `status` (JSON; null for the last one of a call) |
/// | `questions` | a question about a call | `epoch`, `session`, `turn`, `batch`, `place`, `call_id`, `tool`, `request`, `digest`, `arguments`, `shares`, `asked_ms`, `decision`, `who`, `reason`, `edited`, `answered_ms` |
/// | `epochs` | an opening of the journal | `epoch`, `engine`, `boot_id`, `pid`, `durability`, `started_ms`, `ended_ms` (null if it is open, or was not closed) |
/// | `forks` | a sub-agent that was made | `epoch`, `session`, `agent`, `parent`, `is_named`, `terms` (JSON), `made_ms` |
/// | `batches` | a batch | `epoch`, `session`, `agent`, `turn`, `batch`, `request` (its caller's key), `parent_batch` and `parent_place` (the call whose handler has dispatched it), `is_sequential`, `is_open`, `arrived_ms` |
/// | `cancels` | a cancel | `epoch`, `session`, `agent`, `what` (`session`, `in_flight`, `turn`, `batch`, `calls`, `call`), `turn`, `batch`, `place`, `call_id`, `given_ms` |
/// | `verdicts` | what a later epoch has found out about a call | `epoch`, `session`, `turn`, `batch`, `place`, `call_id`, `tool`, `found` (`done`, `not_done`, `unknown`), `output` (JSON), `found_by` (the later epoch), `found_ms` |
pub const VIEWS: [&str; 10] = [
    "sessions",
    "turns",
    "calls",
    "attempts",
    "questions",
    "epochs",
    "forks",
    "batches",
    "cancels",
    "verdicts",
];

const TABLES: &str = "
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE epoch_rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, engine TEXT, boot_id TEXT, pid INTEGER NOT NULL, durability TEXT NOT NULL,
    started_ms INTEGER NOT NULL, ended_ms INTEGER
) STRICT;
CREATE TABLE session_rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, epoch INTEGER NOT NULL REFERENCES epoch_rows, name TEXT NOT NULL, is_named INTEGER NOT NULL,
    terms TEXT NOT NULL, opened_ms INTEGER NOT NULL, after_batch INTEGER NOT NULL,
    removed_turn INTEGER NOT NULL DEFAULT 0, removed_batch INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_names ON session_rows (name, epoch);
CREATE INDEX session_epochs ON session_rows (epoch);
CREATE TABLE fork_rows (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session_rows, agent TEXT NOT NULL, parent TEXT NOT NULL,
    is_named INTEGER NOT NULL, made_by INTEGER, terms TEXT NOT NULL, made_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX fork_sessions ON fork_rows (session);
CREATE TABLE batch_rows (
    id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, agent TEXT NOT NULL,
    turn INTEGER NOT NULL, number INTEGER NOT NULL, request TEXT, parent INTEGER, is_sequential INTEGER NOT NULL,
    is_resend INTEGER NOT NULL DEFAULT 0,
    calls INTEGER, arrived_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX batch_requests ON batch_rows (request) WHERE request IS NOT NULL;
CREATE INDEX batch_parents ON batch_rows (parent) WHERE parent IS NOT NULL;
CREATE INDEX batch_open ON batch_rows (id) WHERE calls IS NULL;
CREATE TABLE call_rows (
    id INTEGER PRIMARY KEY, batch INTEGER NOT NULL REFERENCES batch_rows, place INTEGER NOT NULL, call_id TEXT NOT NULL,
    tool TEXT NOT NULL, arguments TEXT NOT NULL, is_text INTEGER NOT NULL, key TEXT, more TEXT,
    arrived_ms INTEGER NOT NULL, ended_ms INTEGER, status TEXT, code TEXT, ending TEXT, dedupe TEXT, attempts INTEGER,
    sandbox TEXT, was_waited_for INTEGER, cancelled_ms INTEGER, key_released_ms INTEGER
) STRICT;
CREATE INDEX call_batches ON call_rows (batch);
CREATE INDEX call_open ON call_rows (id) WHERE ended_ms IS NULL;
CREATE TABLE attempt_rows (
    call INTEGER NOT NULL REFERENCES call_rows, number INTEGER NOT NULL, version TEXT NOT NULL, side_effects TEXT NOT NULL,
    arguments TEXT, key TEXT, approval TEXT, digest TEXT, timeout_ms INTEGER NOT NULL, facts TEXT NOT NULL,
    started_ms INTEGER NOT NULL, ended_ms INTEGER, status TEXT, is_retried INTEGER,
    PRIMARY KEY (call, number)
) STRICT;
CREATE INDEX attempt_keys ON attempt_rows (call) WHERE key IS NOT NULL;
CREATE TABLE question_rows (
    request TEXT NOT NULL, call INTEGER NOT NULL REFERENCES call_rows, digest TEXT NOT NULL, arguments TEXT NOT NULL,
    shares TEXT, expires_ms INTEGER NOT NULL, asked_ms INTEGER NOT NULL, links TEXT, PRIMARY KEY (call, request)
) STRICT, WITHOUT ROWID;
CREATE TABLE answer_rows (
    call INTEGER NOT NULL REFERENCES call_rows, request TEXT NOT NULL, digest TEXT NOT NULL, decision TEXT NOT NULL,
    who TEXT, reason TEXT, edited TEXT, edited_is_text INTEGER, settled_by TEXT NOT NULL, answered_ms INTEGER NOT NULL,
    links TEXT, PRIMARY KEY (call, request)
) STRICT, WITHOUT ROWID;
CREATE TABLE verdict_rows (
    call INTEGER PRIMARY KEY REFERENCES call_rows, epoch INTEGER NOT NULL, found TEXT NOT NULL, output TEXT,
    found_ms INTEGER NOT NULL, asked INTEGER NOT NULL
) STRICT;
CREATE TABLE cancel_rows (
    id INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES session_rows, agent TEXT NOT NULL, what TEXT NOT NULL,
    turn INTEGER, batch INTEGER, place INTEGER, call_id TEXT, given_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX cancel_sessions ON cancel_rows (session, turn);

CREATE VIEW sessions AS SELECT epoch, name AS session, is_named, terms, opened_ms FROM session_rows;
CREATE VIEW turns AS SELECT s.epoch, s.name AS session, b.agent, b.turn, count(DISTINCT b.id) AS batches,
    count(c.id) AS calls, count(c.id) - count(c.ended_ms) AS open_calls,
    max(b.calls IS NULL OR (c.id IS NOT NULL AND c.ended_ms IS NULL)) AS is_open, min(b.arrived_ms) AS began_ms
    FROM batch_rows b JOIN session_rows s ON s.id = b.session LEFT JOIN call_rows c ON c.batch = b.id
    GROUP BY b.session, b.turn, b.agent;
CREATE VIEW epochs AS SELECT id AS epoch, engine, boot_id, pid, durability, started_ms, ended_ms FROM epoch_rows;
CREATE VIEW forks AS SELECT s.epoch, s.name AS session, f.agent, f.parent, f.is_named, f.terms, f.made_ms
    FROM fork_rows f JOIN session_rows s ON s.id = f.session;
CREATE VIEW cancels AS SELECT s.epoch, s.name AS session, k.agent, k.what, k.turn, k.batch, k.place, k.call_id, k.given_ms
    FROM cancel_rows k JOIN session_rows s ON s.id = k.session;
";

/// Whether a cancel reaches an agent: it is the agent's own, or that of one it descends from.
pub(crate) const REACHES: &str =
    "(k.agent = b.agent OR substr(b.agent, 1, length(k.agent) + 1) = k.agent || '/')";

/// Whether a call was cancelled: it was open when a cancel came, or it is one of those that a cancel holds for in future.
pub(crate) fn is_cancelled() -> String {
    format!(
        "(c.cancelled_ms IS NOT NULL OR EXISTS (SELECT 1 FROM cancel_rows k WHERE k.session = b.session
            AND (k.what = 'session' OR (k.what = 'turn' AND k.turn = b.turn) OR (k.what = 'batch' AND k.batch = b.number)
                OR (k.what = 'call' AND k.batch = b.number AND k.place = c.place))
            AND {REACHES} AND (c.ended_ms IS NULL OR k.given_ms <= c.arrived_ms)))"
    )
}

/// What the views of what belongs to calls begin with.
const PLACE: &str = "s.epoch, s.name AS session, b.turn, b.number AS batch, c.place, c.call_id, c.tool";

/// The views that have batches and what belongs to them: the columns of each, and what is joined to sessions `s` and their
/// batches `b` for them.
pub(crate) fn of_batches() -> [(&'static str, String, &'static str); 5] {
    let batches = "s.epoch, s.name AS session, b.agent, b.turn, b.number AS batch, b.request,
        p.number AS parent_batch, b.parent % 16777216 AS parent_place, b.is_sequential, b.calls IS NULL AS is_open,
        b.arrived_ms";
    let attempts = format!(
        "{PLACE}, a.number AS attempt, a.version, a.side_effects, coalesce(a.arguments, c.arguments) AS arguments,
        a.approval, a.digest, a.timeout_ms, a.started_ms, a.ended_ms, a.status"
    );
    let questions = format!(
        "{PLACE}, q.request, q.digest, q.arguments, q.shares, q.asked_ms, n.decision, n.who, n.reason, n.edited,
        n.answered_ms"
    );
    let verdicts = format!("{PLACE}, v.found, v.output, v.epoch AS found_by, v.found_ms");
    [
        ("batches", batches.to_owned(), "LEFT JOIN batch_rows p ON p.id = b.parent / 16777216"),
        ("calls", call(), "JOIN call_rows c ON c.batch = b.id"),
        ("attempts", attempts, "JOIN call_rows c ON c.batch = b.id JOIN attempt_rows a ON a.call = c.id"),
        (
            "questions",
            questions,
            "JOIN call_rows c ON c.batch = b.id JOIN question_rows q ON q.call = c.id
             LEFT JOIN answer_rows n ON n.call = q.call AND n.request = q.request",
        ),
        ("verdicts", verdicts, "JOIN call_rows c ON c.batch = b.id JOIN verdict_rows v ON v.call = c.id"),
    ]
}

/// These views. In which order they are joined is for SQLite to choose.
fn views() -> String {
    let view = |(name, what, joined)| {
        format!(
            "CREATE VIEW {name} AS SELECT {what} FROM batch_rows b JOIN session_rows s ON s.id = b.session {joined};\n"
        )
    };
    of_batches().into_iter().map(view).collect()
}

/// The columns of the view of calls.
fn call() -> String {
    format!(
        "s.epoch, s.name AS session, b.agent, b.turn, b.number AS batch, c.place, c.call_id,
        c.tool, c.arguments, c.key, CASE WHEN c.ended_ms IS NOT NULL THEN 'ended'
            WHEN EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = c.id)
                OR EXISTS (SELECT 1 FROM batch_rows n WHERE n.parent = c.id) THEN 'attempted' ELSE 'not_started' END AS state,
        {} AS is_cancelled, c.status, c.code, c.dedupe, c.attempts, c.sandbox, c.arrived_ms, c.ended_ms,
        c.key_released_ms",
        is_cancelled()
    )
}

/// Sets a connection up for the writer, and makes the tables if the file is new.
pub(crate) fn prepare(db: &mut Connection, path: &Path, durability: Durability) -> Result<(), JournalError> {
    let failed = || JournalError::sqlite(path, "opening the journal");
    let is_new = is_empty(db).map_err(failed())?;
    if !is_new {
        check(db, path)?;
    }
    // How a file grows is settled before it has a page.
    db.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(failed())?;
    db.execute_batch("PRAGMA journal_mode = WAL").map_err(failed())?;
    db.execute_batch(durability.pragmas()).map_err(failed())?;
    let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(failed())?;
    if mode != "wal" {
        let source = format!("this place has no shared memory for SQLite's log: its mode is '{mode}'").into();
        return Err(JournalError::Sqlite { path: path.to_owned(), doing: "opening the journal", source });
    }
    db.execute_batch(
        "PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 8192",
    )
    .map_err(failed())?;
    db.set_prepared_statement_cache_capacity(64);
    if is_new { create(db).map_err(failed()) } else { Ok(()) }
}

pub(crate) fn create(db: &mut Connection) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.execute_batch(TABLES)?;
    tx.execute_batch(listing::TABLES)?;
    tx.execute_batch(&views())?;
    tx.execute("INSERT INTO meta VALUES ('schema_version', ?1)", [VERSION.to_string()])?;
    tx.pragma_update(None, "application_id", APPLICATION)?;
    tx.pragma_update(None, "user_version", VERSION)?;
    tx.commit()
}

/// Whether the file has no tables, as one whose making was interrupted.
fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 && pragma(db, "application_id")? == 0)
}

/// Refuses files that are no journal, or of a version that is not known.
pub(crate) fn check(db: &Connection, path: &Path) -> Result<(), JournalError> {
    let failed = || JournalError::sqlite(path, "reading the file's header");
    if pragma(db, "application_id").map_err(failed())? != APPLICATION {
        return Err(JournalError::NotAJournal { path: path.to_owned() });
    }
    let found = pragma(db, "user_version").map_err(failed())?;
    match found {
        VERSION => Ok(()),
        newer if newer > VERSION => {
            Err(JournalError::Newer { path: path.to_owned(), found: newer, known: VERSION })
        }
        other => {
            let what = format!("its schema is version {other}, which never was");
            Err(JournalError::Content { path: path.to_owned(), what })
        }
    }
}

/// Lets a statement keep its plan whatever is bound to it: some versions of SQLite prepare a join anew each time that another
/// value is, which costs more than most of these statements do.
pub(crate) fn keep_plans(db: &Connection) -> rusqlite::Result<()> {
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

pub(crate) fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, name, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    /// JR-5: a statement that is kept is prepared once, whatever it is asked for.
    #[test]
    fn a_kept_statement_is_prepared_once() {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let path = directory.path().join("journal");
        let journal = crate::Journal::open(&path, crate::Settings::default()).expect("it is new");
        for db in [crate::reader::connect(&path), crate::writer::connect(&path)] {
            let db = db.expect("it is there");
            let sql =
                "SELECT count(*) FROM session_rows s JOIN epoch_rows e ON e.id = s.epoch WHERE s.name = ?1";
            let mut join = db.prepare(sql).expect("it is SQL");
            for name in ["a", "b", "c"] {
                join.query_row([name], |_| Ok(())).expect("it counts");
            }
            assert_eq!(join.get_status(StatementStatus::RePrepare), 0);
        }
        journal.close().expect("it can be closed");
    }
}
