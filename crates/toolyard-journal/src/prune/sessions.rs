//! Openings of sessions of which nothing is left.

use crate::epoch::EpochId;
use rusqlite::{Connection, TransactionBehavior, params};

/// How many are removed in one transaction.
const SESSIONS: i64 = 1000;

/// How many epochs an opening of the journal looks back. Each one looks at what was left by those before it.
const EPOCHS: i64 = 16;

/// A session `s` of an earlier epoch that has no batch.
const EMPTY: &str = "s.epoch < (SELECT max(id) FROM epoch_rows)
    AND NOT EXISTS (SELECT 1 FROM batch_rows b WHERE b.session = s.id)";

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

/// It says that an older one of its name is closed.
const CLOSES: &str = "EXISTS (SELECT 1 FROM session_rows o WHERE o.name = s.name AND o.id < s.id)
    AND EXISTS (SELECT 1 FROM cancel_rows k WHERE k.session = s.id AND k.what = 'session' AND k.agent = 'root')";

/// It is the only one of its name, and is not to be opened again.
const OVER: &str = "NOT EXISTS (SELECT 1 FROM session_rows o WHERE o.name = s.name AND o.id < s.id)
    AND (json_extract(s.terms, '$.description') IS NULL
        OR EXISTS (SELECT 1 FROM cancel_rows k WHERE k.session = s.id AND k.what = 'session'))";

/// Removes some of which nothing is left. How many. The newest of a name stays while there are older ones, and while it is to be
/// opened again; one that was closed stays while there are older ones, which are closed with it.
pub(super) fn remove_empty(db: &mut Connection) -> rusqlite::Result<usize> {
    let empty = format!(
        "SELECT s.id FROM session_rows s
         WHERE {EMPTY} AND NOT ({CLOSES}) AND (({SUPERSEDED}) OR ({OVER})) LIMIT ?1"
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
         WHERE s.epoch BETWEEN ?2 AND ?3 AND {EMPTY} AND {IDLE} AND {SUPERSEDED} LIMIT ?1"
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
