//! How the batches of a session are found: by a list, into which they are put many at a time.
//!
//! ```text
//!   batch_rows   1 ─────────────── until │ until + 1 ──────── newest
//!                in `listed_rows`, by    │ looked through: some 1000
//!                session, turn, number   │ at most while a journal is written
//! ```
//!
//! The rows of a commit are next to each other in their tables. In an index of sessions they would not be: with 64 sessions,
//! 64 batches change 64 pages of it, more than all else in their commit. Put there 1024 at a time, those of a session are next
//! to each other too.
//!
//! Whoever asks for batches by their session uses what is here, and looks through the rest once for what is asked, not once for
//! each session. That the list has all up to `until`, none that is gone, and each under the session that has it, is seen to by
//! triggers; `verify` looks at it.

use rusqlite::Connection;

/// How many batches are put into the list at once.
pub(crate) const LISTED_EACH: u32 = 1024;

pub(crate) const TABLES: &str = "
CREATE TABLE listed_rows (
    session INTEGER NOT NULL, turn INTEGER NOT NULL, number INTEGER NOT NULL, batch INTEGER NOT NULL,
    PRIMARY KEY (session, turn, number, batch)
) STRICT, WITHOUT ROWID;
CREATE TABLE listed_until (id INTEGER PRIMARY KEY CHECK (id = 1), batch INTEGER NOT NULL) STRICT;
INSERT INTO listed_until VALUES (1, 0);
CREATE TRIGGER batches_listed AFTER UPDATE ON listed_until BEGIN
    INSERT OR IGNORE INTO listed_rows (session, turn, number, batch) SELECT session, turn, number, id FROM batch_rows
        WHERE id > old.batch AND id <= new.batch ORDER BY session, turn, number, id;
END;
CREATE TRIGGER batch_moved AFTER UPDATE OF session, turn, number ON batch_rows BEGIN
    UPDATE listed_rows SET session = new.session, turn = new.turn, number = new.number
        WHERE session = old.session AND turn = old.turn AND number = old.number AND batch = old.id;
END;
CREATE TRIGGER batch_gone AFTER DELETE ON batch_rows BEGIN
    DELETE FROM listed_rows WHERE session = old.session AND turn = old.turn AND number = old.number AND batch = old.id;
END;
";

/// Puts all batches into the list. What would fail changes nothing (`OR IGNORE`) and is told here, so that SQLite need not keep
/// copies of the pages to take the statement back.
pub(crate) fn list(db: &Connection) -> rusqlite::Result<()> {
    let all =
        "UPDATE OR IGNORE listed_until SET batch = max(batch, (SELECT coalesce(max(id), 0) FROM batch_rows))";
    match db.prepare_cached(all)?.execute([])? {
        1 => Ok(()),
        other => Err(rusqlite::Error::StatementChangedRows(other)),
    }
}

/// The last batch that the list may have.
macro_rules! until {
    () => {
        "coalesce((SELECT batch FROM listed_until), 0)"
    };
}

/// The batches that are not in the list, with its columns.
const RECENT: &str =
    concat!("(SELECT session, turn, number, id AS batch FROM batch_rows WHERE id > ", until!(), ")");

/// The query of something of the batches of which conditions of their session, and others, hold.
fn query(what: &str, session: &str, condition: &str) -> String {
    format!(
        "SELECT {what} FROM listed_rows WHERE session {session} AND {condition}
         UNION ALL SELECT {what} FROM {RECENT} WHERE session {session} AND {condition}"
    )
}

/// That a session is one of those of this name.
fn named(name: &str) -> String {
    format!("IN (SELECT id FROM session_rows WHERE name = {name})")
}

/// The query of the batches of the sessions of a name, which an expression of SQL gives.
pub(crate) fn of_name(name: &str) -> String {
    query("batch", &named(name), "1")
}

/// The query of the batches that a turn has in the sessions of a name.
pub(crate) fn of_name_and_turn(name: &str, turn: &str) -> String {
    query("batch", &named(name), &format!("turn = {turn}"))
}

/// The query of the highest turn, and the highest number of a batch, in the sessions of a name; nulls if they have none.
pub(crate) fn highest(name: &str) -> String {
    format!("SELECT max(turn), max(number) FROM ({})", query("turn, number", &named(name), "1"))
}

/// The query of the batches of a turn of a session.
pub(crate) fn of_turn(session: &str, turn: &str) -> String {
    query("batch", &format!("= {session}"), &format!("turn = {turn}"))
}

/// The query of the batches of later turns of a session.
pub(crate) fn after_turn(session: &str, turn: &str) -> String {
    query("batch", &format!("= {session}"), &format!("turn > {turn}"))
}

/// The query of the batches of the sessions that a query gives.
pub(crate) fn of_sessions(sessions: &str) -> String {
    query("batch", &format!("IN ({sessions})"), "1")
}

/// The query of the sessions of a name that have this turn.
pub(crate) fn with_turn(name: &str, turn: &str) -> String {
    query("session", &named(name), &format!("turn = {turn}"))
}

/// Whether a session has no batch.
pub(crate) fn has_none(session: &str) -> String {
    format!(
        "(NOT EXISTS (SELECT 1 FROM listed_rows WHERE session = {session})
            AND {session} NOT IN (SELECT session FROM {RECENT}))"
    )
}

/// A query of something of sessions `s` of which a condition holds and their batches `b`, with what is joined to them: by those
/// in the list, and by the others.
pub(crate) fn by_session(what: &str, joined: &str, condition: &str) -> String {
    format!(
        "SELECT {what} FROM session_rows s CROSS JOIN listed_rows l ON l.session = s.id
             CROSS JOIN batch_rows b ON b.id = l.batch {joined} WHERE {condition}
         UNION ALL SELECT {what} FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session {joined}
             WHERE b.id > {} AND {condition}",
        until!()
    )
}

/// Batches that should be in the list and are not, each with its session's name and its number.
pub(crate) const LACKS: &str =
    "SELECT s.name, b.number FROM batch_rows b JOIN session_rows s ON s.id = b.session
    WHERE b.id <= (SELECT batch FROM listed_until) AND NOT EXISTS (SELECT 1 FROM listed_rows l
        WHERE l.session = b.session AND l.turn = b.turn AND l.number = b.number AND l.batch = b.id)";

/// What the list has of no batch, or under another session, turn or number than it is of.
pub(crate) const STALE: &str = "SELECT 1 FROM listed_rows l WHERE NOT EXISTS (SELECT 1 FROM batch_rows b
    WHERE b.id = l.batch AND b.session = l.session AND b.turn = l.turn AND b.number = l.number)";

/// What keeps the list true, if that is not as it must be.
pub(crate) const UNKEPT: &str = "
    SELECT 'it is not said up to which batch it goes' WHERE NOT EXISTS (SELECT 1 FROM listed_until)
    UNION ALL SELECT 'it is said to go beyond the last batch' FROM listed_until
        WHERE batch > coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'batch_rows'), 0)
    UNION ALL SELECT 'a trigger is missing' WHERE 3 > (SELECT count(*) FROM sqlite_schema
        WHERE type = 'trigger' AND name IN ('batches_listed', 'batch_moved', 'batch_gone'))";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use rusqlite::{StatementStatus, params};

    /// A journal with so many batches, in turn of each of these sessions, every turn of two.
    fn journal(batches: i64, sessions: i64) -> Connection {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        schema::create(&mut db).expect("it is new");
        db.execute_batch(
            "INSERT INTO epoch_rows (pid, durability, started_ms) VALUES (1, 'full', 0);
             INSERT INTO session_rows (id, epoch, name, is_named, terms, opened_ms, after_batch)
                 VALUES (0, 1, 'even', 1, '', 0, 0), (1, 1, 'odd', 1, '', 0, 0), (2, 1, 'even', 1, '', 0, 0)",
        )
        .expect("the tables are there");
        for number in 0..batches {
            let sql =
                "INSERT INTO batch_rows (session, agent, turn, number, is_sequential, calls, arrived_ms)
                       VALUES (?1, 'root', ?2, ?3, 0, 0, 0)";
            let of_session = number / sessions;
            db.execute(sql, params![number % sessions, of_session / 2, of_session]).expect("a batch");
        }
        db
    }

    fn found(db: &Connection, sql: &str) -> Vec<i64> {
        let mut query = db.prepare(&format!("{sql} ORDER BY 1")).expect("it is SQL");
        let all = query.query_map([], |row| row.get(0)).expect("the tables are there");
        all.collect::<Result<_, _>>().expect("these are numbers")
    }

    /// What each query finds of session 2, of which batches 3, 8, … are, and the turn 1 of it; its name is that of session 0.
    fn all_found(db: &Connection) -> [Vec<i64>; 6] {
        let of_both = [of_name("'even'"), of_name_and_turn("'even'", "1")];
        let of_it = [of_sessions("VALUES (2)"), of_turn("2", "1"), after_turn("2", "1")];
        let highest = format!("SELECT \"max(number)\" FROM ({})", highest("'even'"));
        let [a, b] = of_both.map(|sql| found(db, &sql));
        let [c, d, e] = of_it.map(|sql| found(db, &sql));
        [a, b, c, d, e, found(db, &highest)]
    }

    fn is_whole(db: &Connection) -> bool {
        [LACKS, STALE].iter().all(|sql| found(db, sql).is_empty())
    }

    /// JR-2: a batch is found by its session whether it is in the list or not, and in both once.
    #[test]
    fn batches_are_found_whether_they_are_listed_or_not() {
        let db = journal(25, 5);
        let all = [
            vec![1, 3, 6, 8, 11, 13, 16, 18, 21, 23],
            vec![11, 13, 16, 18],
            vec![3, 8, 13, 18, 23],
            vec![13, 18],
            vec![23],
            vec![4],
        ];
        assert_eq!(all_found(&db), all);
        for until in [0, 10, 18, 25] {
            db.execute("UPDATE listed_until SET batch = ?1", [until]).expect("it can be written");
            assert_eq!(all_found(&db), all);
            assert!(is_whole(&db));
        }
        list(&db).expect("it can be written");
        assert_eq!(found(&db, "SELECT batch FROM listed_until"), [25]);
        assert_eq!(all_found(&db), all);
        let empty = |session: &str| found(&db, &format!("SELECT {}", has_none(session)));
        assert_eq!((empty("2"), empty("5")), (vec![0], vec![1]));
    }

    /// JR-8, JR-13: the list follows a batch that gets another session, and one that is removed, listed or not.
    #[test]
    fn the_list_follows_its_batches() {
        let db = journal(25, 5);
        db.execute("UPDATE listed_until SET batch = 12", []).expect("it can be written");
        db.execute("UPDATE batch_rows SET session = 2 WHERE id IN (4, 14)", []).expect("it can be written");
        db.execute("DELETE FROM batch_rows WHERE id IN (3, 13)", []).expect("it can be written");
        assert_eq!(all_found(&db)[2], [4, 8, 14, 18, 23]);
        assert!(is_whole(&db));
        list(&db).expect("it can be written");
        assert_eq!(all_found(&db)[2], [4, 8, 14, 18, 23]);
        assert!(is_whole(&db));
        // Numbers of batches are not given again: what is removed last leaves nothing that is taken for listed.
        db.execute("DELETE FROM batch_rows WHERE id > 20", []).expect("it can be written");
        list(&db).expect("it can be written");
        assert_eq!(found(&db, "SELECT batch FROM listed_until"), [25]);
    }

    /// The steps that SQLite takes for a query, in all.
    fn steps(db: &Connection, sql: &str) -> i32 {
        let mut query = db.prepare(sql).expect("it is SQL");
        let mut rows = query.query([]).expect("it is read");
        while rows.next().expect("it is read").is_some() {}
        drop(rows);
        query.get_status(StatementStatus::VmStep)
    }

    fn queries() -> [String; 8] {
        [
            of_name("'even'"),
            of_name_and_turn("'even'", "1"),
            highest("'even'"),
            of_sessions("VALUES (2)"),
            of_turn("2", "1"),
            after_turn("2", "1"),
            with_turn("'even'", "1"),
            format!("SELECT {}", has_none("2")),
        ]
    }

    /// What is asked for by a session costs what that has, and what is not listed: not what all others have.
    #[test]
    fn others_cost_nothing() {
        let all = |batches: i64, sessions: i64| {
            let db = journal(batches, sessions);
            list(&db).expect("it can be written");
            let of_view = |(_, what, joined): (_, String, _)| {
                steps(&db, &by_session(&what, joined, "s.epoch = 1 AND s.name = 'even'"))
            };
            let views = schema::of_batches().map(of_view);
            (queries().map(|sql| steps(&db, &sql)), views)
        };
        assert_eq!(all(25, 5), all(2500, 500));
    }

    /// What is not listed is looked through once, however often the name was opened.
    #[test]
    fn openings_cost_little() {
        let all = |openings: i64| {
            let db = journal(500, 5);
            for id in 10..10 + openings {
                let sql =
                    "INSERT INTO session_rows (id, epoch, name, is_named, terms, opened_ms, after_batch)
                           VALUES (?1, 1, 'even', 1, '', 0, 0)";
                db.execute(sql, [id]).expect("the tables are there");
            }
            queries().map(|sql| steps(&db, &sql))
        };
        for (few, many) in all(0).into_iter().zip(all(100)) {
            assert!(many <= few + 100 * 40, "{few} and {many}");
        }
    }
}
