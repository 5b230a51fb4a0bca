//! Removing what has ended, by age and by size (JR-13).

use crate::{
    error::JournalError,
    schema::{PLACES, check, pragma},
    stamp::millis,
    writer::connect,
};
use rusqlite::{Connection, TransactionBehavior, params};
use std::{
    collections::BTreeSet,
    path::Path,
    time::{Duration, SystemTime},
};

/// How many turns are removed in one transaction, and how many pages are given back.
const STEP: i64 = 20;
const PAGES: i64 = 1000;

/// What is kept of what has ended. What is open is always kept.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_journal::Keep;
/// let keep = Keep::default().newer_than(Duration::from_secs(30 * 24 * 3600)).at_most(1 << 30);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Keep {
    newer_than: Option<Duration>,
    at_most: Option<u64>,
}

impl Keep {
    /// Removes turns that began longer ago.
    pub fn newer_than(mut self, age: Duration) -> Self {
        self.newer_than = Some(age);
        self
    }

    /// Removes the oldest turns until what is left takes at most this many bytes.
    pub fn at_most(mut self, bytes: u64) -> Self {
        self.at_most = Some(bytes);
        self
    }
}

/// What [`prune`] has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Pruned {
    /// How many batches are gone, with their calls.
    pub batches: u64,
    /// How many bytes the journal takes now, without SQLite's log.
    pub bytes: u64,
}

/// Removes what has ended and is not to be kept, the oldest first, in small steps, and gives the room back. A
/// writer waits for each of them, and while one follows the other it may not get its turn for long (JR-12): prune while
/// little is written. A turn goes as a whole and only when all of it has ended, with what its calls' handlers have
/// dispatched; an epoch and its sessions when nothing is left of them, except the newest.
///
/// A key whose call is removed is not known any more after a restart: keep what may be sent again.
///
/// # Errors
/// [`JournalError`] if the file is none of a journal, or cannot be written, also because a writer keeps it busy.
pub fn prune(path: impl AsRef<Path>, keep: Keep) -> Result<Pruned, JournalError> {
    let path = path.as_ref();
    let failed = || JournalError::sqlite(path, "pruning the journal");
    let mut db = connect(path)?;
    check(&db, path)?;
    db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL").map_err(failed())?;
    let before = keep.newer_than.map(|age| SystemTime::now().checked_sub(age).map_or(0, millis));
    let mut pruned = Pruned::default();
    loop {
        let is_large = match keep.at_most {
            Some(most) => used(&db).map_err(failed())? > most,
            None => false,
        };
        let before = if is_large { Some(i64::MAX) } else { before };
        let Some(before) = before else { break };
        let removed = step(&mut db, before).map_err(failed())?;
        if removed == 0 {
            break;
        }
        pruned.batches += removed;
    }
    remove_empty(&mut db).map_err(failed())?;
    give_back(&db).map_err(failed())?;
    pruned.bytes = used(&db).map_err(failed())?;
    Ok(pruned)
}

/// The bytes of the pages that hold something.
fn used(db: &Connection) -> rusqlite::Result<u64> {
    let pages = pragma(db, "page_count")? - pragma(db, "freelist_count")?;
    Ok(pages.unsigned_abs() * pragma(db, "page_size")?.unsigned_abs())
}

/// Removes the batches of some turns that began before this time. How many.
fn step(db: &mut Connection, before: i64) -> rusqlite::Result<u64> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // What is kept: batches of which something is open, those whose handlers have dispatched them, what their handlers have
    // dispatched, and all that is of the same turn as one of these.
    let ended = format!(
        "WITH RECURSIVE kept(id) AS (
             SELECT batch FROM call_rows WHERE ended_ms IS NULL UNION SELECT id FROM batch_rows WHERE calls IS NULL
             UNION SELECT b.parent / {PLACES} FROM kept JOIN batch_rows b ON b.id = kept.id WHERE b.parent IS NOT NULL
             UNION SELECT n.id FROM kept JOIN batch_rows n
                 ON n.parent BETWEEN kept.id * {PLACES} AND (kept.id + 1) * {PLACES} - 1
             UNION SELECT o.id FROM kept JOIN batch_rows b ON b.id = kept.id
                 JOIN batch_rows o ON o.session = b.session AND o.turn = b.turn)
         SELECT session, turn FROM batch_rows WHERE arrived_ms < ?1 AND id NOT IN kept ORDER BY id LIMIT {STEP}"
    );
    let turns: BTreeSet<(i64, i64)> = tx
        .prepare(&ended)?
        .query_map([before], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<_, _>>()?;
    let mut removed = 0;
    for (session, turn) in turns {
        let batches = "SELECT id FROM batch_rows WHERE session = ?1 AND turn = ?2";
        for table in ["attempt_rows", "question_rows", "answer_rows", "verdict_rows"] {
            let sql = format!(
                "DELETE FROM {table} WHERE call IN (SELECT id FROM call_rows WHERE batch IN ({batches}))"
            );
            tx.prepare_cached(&sql)?.execute(params![session, turn])?;
        }
        let calls = format!("DELETE FROM call_rows WHERE batch IN ({batches})");
        tx.prepare_cached(&calls)?.execute(params![session, turn])?;
        tx.prepare_cached("DELETE FROM cancel_rows WHERE session = ?1 AND turn = ?2")?
            .execute(params![session, turn])?;
        let gone = "DELETE FROM batch_rows WHERE session = ?1 AND turn = ?2";
        removed += tx.prepare_cached(gone)?.execute(params![session, turn])? as u64;
    }
    tx.commit()?;
    Ok(removed)
}

/// Removes the sessions and epochs of which nothing is left, but for those of the newest.
fn remove_empty(db: &mut Connection) -> rusqlite::Result<()> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let empty = "SELECT s.id FROM session_rows s WHERE s.epoch < (SELECT max(id) FROM epoch_rows)
                 AND NOT EXISTS (SELECT 1 FROM batch_rows b WHERE b.session = s.id)";
    for table in ["fork_rows", "cancel_rows"] {
        tx.execute(&format!("DELETE FROM {table} WHERE session IN ({empty})"), [])?;
    }
    tx.execute(&format!("DELETE FROM session_rows WHERE id IN ({empty})"), [])?;
    tx.execute(
        "DELETE FROM epoch_rows WHERE id < (SELECT max(id) FROM epoch_rows)
         AND NOT EXISTS (SELECT 1 FROM session_rows s WHERE s.epoch = epoch_rows.id)",
        [],
    )?;
    tx.commit()
}

/// Gives the room of removed rows back, some pages at a time.
fn give_back(db: &Connection) -> rusqlite::Result<()> {
    let mut free = pragma(db, "freelist_count")?;
    while free > 0 {
        // Each row that the statement gives is a page.
        let mut vacuum = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        let left = pragma(db, "freelist_count")?;
        if left >= free {
            break;
        }
        free = left;
    }
    Ok(())
}
