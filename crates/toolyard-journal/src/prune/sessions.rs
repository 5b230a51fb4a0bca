//! Openings of sessions of which nothing is left.

use crate::{epoch::EpochId, listing::has_none};
use rusqlite::{Connection, TransactionBehavior, params};

/// How many are removed in one transaction.
const SESSIONS: i64 = 1000;

/// How many epochs an opening of the journal looks back. Each one looks at what was left by those before it.
const EPOCHS: i64 = 16;

/// A session `s` of an earlier epoch that has no batch.
fn is_empty() -> String {
    format!("s.epoch < (SELECT max(id) FROM epoch_rows) AND {}", has_none("s.id"))
}

/// A newer one of its name stands for it: that says whether the name is open, what it is described by and who its agents are,
/// or the name was cancelled as a whole since.
const SUPERSEDED: &str = "EXISTS (SELECT 1 FROM session_rows n WHERE n.name = s.name AND n.id > s.id)
    AND (EXISTS (SELECT 1 FROM cancel_rows k JOIN session_rows n ON n.id = k.session
            WHERE n.name = s.name AND n.id >= s.id AND k.what = 'session' AND k.agent = 'root')
        OR ((json_extract(s.terms, '$.description') IS NULL OR EXISTS (SELECT 1 FROM session_rows n
            WHERE n.name = s.name AND n.id > s.id AND json_extract(n.terms, '$.description') IS NOT NULL))
        AND NOT EXISTS (SELECT 1 FROM fork_rows f WHERE f.session = s.id AND f.is_named
            AND f.made_by IS NULL AND NOT EXISTS (SELECT 1 FROM fork_rows g
                JOIN session_rows n ON n.id = g.session
                WHERE n.name = s.name AND n.id > s.id AND g.agent = f.agent))))";

/// It says that an older one of its name is closed, which has turns: one that has none goes too, and before it.
fn closes() -> String {
    format!(
        "EXISTS (SELECT 1 FROM cancel_rows k WHERE k.session = s.id AND k.what = 'session' AND k.agent = 'root')
         AND EXISTS (SELECT 1 FROM session_rows o WHERE o.name = s.name AND o.id < s.id AND NOT {})",
        has_none("o.id")
    )
}

/// It is the only one of its name, and is not to be opened again.
const OVER: &str = "NOT EXISTS (SELECT 1 FROM session_rows o WHERE o.name = s.name AND o.id < s.id)
    AND (json_extract(s.terms, '$.description') IS NULL
        OR EXISTS (SELECT 1 FROM cancel_rows k WHERE k.session = s.id AND k.what = 'session'))";

/// Removes some of which nothing is left. How many. The newest of a name stays while there are older ones, and while it is to be
/// opened again; one that was closed stays while there are older ones with turns, which are closed with it. The
/// oldest go first, so that none is found without the one that has closed it.
pub(super) fn remove_empty(db: &mut Connection) -> rusqlite::Result<usize> {
    let (is_empty, closes) = (is_empty(), closes());
    let empty = format!(
        "SELECT s.id FROM session_rows s
         WHERE {is_empty} AND NOT ({closes}) AND (({SUPERSEDED}) OR ({OVER})) ORDER BY s.id LIMIT ?1"
    );
    remove(db, &empty, params![SESSIONS])
}

/// Nothing was done in it that counts for its name: no cancel, and no agent whose number is not to be given again.
const IDLE: &str = "NOT EXISTS (SELECT 1 FROM cancel_rows k WHERE k.session = s.id)
    AND NOT EXISTS (SELECT 1 FROM fork_rows f WHERE f.session = s.id AND NOT f.is_named)";

/// Removes the openings of the epochs before this one in which nothing was done and for which newer ones stand: however often an
/// engine opens its sessions again, there are two records of one that is idle.
pub(crate) fn remove_superseded(db: &mut Connection, epoch: EpochId) -> rusqlite::Result<()> {
    let superseded = format!(
        "SELECT s.id FROM session_rows s
         WHERE s.epoch BETWEEN ?2 AND ?3 AND {} AND {IDLE} AND {SUPERSEDED} LIMIT ?1",
        is_empty()
    );
    let (first, last) = (epoch.0.saturating_sub(EPOCHS), epoch.0.saturating_sub(1));
    while remove(db, &superseded, params![SESSIONS, first, last])? > 0 {}
    Ok(())
}

/// Removes the sessions that a query finds. How many.
fn remove(db: &mut Connection, found_by: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let sessions: Vec<i64> =
        tx.prepare(found_by)?.query_map(values, |row| row.get(0))?.collect::<Result<_, _>>()?;
    for session in &sessions {
        // The numbers that a name has used stay with its newest row.
        tx.prepare_cached(
            "UPDATE session_rows SET removed_turn = max(session_rows.removed_turn, s.removed_turn),
                 removed_batch = max(session_rows.removed_batch, s.removed_batch) FROM session_rows s
             WHERE s.id = ?1 AND session_rows.id = (SELECT max(n.id) FROM session_rows n WHERE n.name = s.name)",
        )?
        .execute([session])?;
        for (table, column) in [("fork_rows", "session"), ("cancel_rows", "session"), ("session_rows", "id")]
        {
            tx.prepare_cached(&format!("DELETE FROM {table} WHERE {column} = ?1"))?.execute([session])?;
        }
    }
    tx.commit()?;
    Ok(sessions.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal with so many openings of a name, each closed, in an epoch that another one follows.
    fn closed(openings: i64) -> Connection {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        crate::schema::create(&mut db).expect("it is new");
        for _ in 0..2 {
            crate::epoch::begin(&db, crate::Durability::Full).expect("the tables are there");
        }
        for id in 1..=openings {
            db.execute(
                "INSERT INTO session_rows (id, epoch, name, is_named, terms, opened_ms, after_batch)
                 VALUES (?1, 1, 'job', 1, '{\"description\": \"x\"}', ?1, 0)",
                [id],
            )
            .expect("the epoch is there");
            db.execute(
                "INSERT INTO cancel_rows (session, agent, what, given_ms) VALUES (?1, 'root', 'session', ?1)",
                [id],
            )
            .expect("the session is there");
        }
        db
    }

    /// Removes what it can. How many each transaction has removed.
    fn removed(db: &mut Connection) -> Vec<usize> {
        let passes = std::iter::repeat_with(|| remove_empty(db).expect("it can be written"));
        passes.take_while(|removed| *removed > 0).collect()
    }

    /// JR-13: closed openings of one name go together, and the newest after them.
    #[test]
    fn closed_openings_of_a_name_go_together() {
        assert_eq!(removed(&mut closed(300)), [299, 1]);
        // More than one transaction takes: the oldest first, so that none is found open meanwhile.
        let mut db = closed(SESSIONS + 2);
        assert_eq!(remove_empty(&mut db).ok(), usize::try_from(SESSIONS).ok());
        let least = db.query_row("SELECT min(id) FROM session_rows", [], |row| row.get::<_, i64>(0));
        assert_eq!(least, Ok(SESSIONS + 1));
    }

    /// JR-13: that a name was closed stays while an older opening of it has turns.
    #[test]
    fn what_closes_turns_stays() {
        let mut db = closed(3);
        let sql = "INSERT INTO batch_rows (session, agent, turn, number, is_sequential, calls, arrived_ms)
                   VALUES (2, 'root', 1, 1, 0, 0, 0)";
        db.execute(sql, []).expect("the session is there");
        db.execute("DELETE FROM cancel_rows WHERE session = 2", []).expect("it can be written");
        assert_eq!(removed(&mut db), [1]);
        let closes = db
            .query_row("SELECT count(*) FROM cancel_rows WHERE session = 3", [], |row| row.get::<_, i64>(0));
        assert_eq!(closes, Ok(1));
    }
}
