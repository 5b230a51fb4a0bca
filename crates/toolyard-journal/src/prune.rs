//! Removing what has ended, by age and by size (JR-13).

//!
//! ```text
//!   the next turns, read beside the writer ─► begin ─► still nothing of them open? ─► remove ─► commit ─► pause
//!     ▲ once through those that were there at the start                                                   │
//!     └───────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```

mod sessions;
mod turns;

use crate::{
    error::JournalError,
    listing::list,
    schema::{check, pragma},
    stamp::millis,
    writer::connect,
};
use rusqlite::Connection;
use std::{
    path::Path,
    time::{Duration, Instant, SystemTime},
};
use turns::Scan;

pub(crate) use sessions::remove_superseded;

/// How many pages are given back in one transaction.
const PAGES: i64 = 1000;
/// The shortest pause after a transaction: longer than SQLite's first waits for a file that is busy.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a transaction waits for a writer that is busy.
const BUSY_WAIT: Duration = Duration::from_secs(10);

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

/// Removes what has ended and is not to be kept, the oldest first, in small steps, and gives the room back. After each step
/// it pauses for as long as the step took, and for at least 20 ms, so that a writer goes on beside it. Blocks this thread.
///
/// It goes once through the turns that had begun when it was called, so that it ends beside a writer that is as fast: what
/// comes meanwhile is for the next time, also if it takes more than [`Keep::at_most`].
///
/// A turn goes as a whole and only when all of it has ended, with what its calls' handlers have
/// dispatched; an epoch and its sessions when nothing is left of them, except the newest, and
/// one of which records may be missing while one before it has left calls open. While the newest epoch is not
/// closed, the newest turn of each of its agents is kept, because another batch of it may come.
///
/// A key whose call is removed is not known any more after a restart: keep what may be sent again.
///
/// # Errors
/// [`JournalError`] if the file is none of a journal, or cannot be written, also because a writer keeps it busy for 10 s.
pub fn prune(path: impl AsRef<Path>, keep: Keep) -> Result<Pruned, JournalError> {
    let path = path.as_ref();
    let failed = || JournalError::sqlite(path, "pruning the journal");
    let mut db = connect(path)?;
    check(&db, path)?;
    db.busy_timeout(BUSY_WAIT).map_err(failed())?;
    db.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL").map_err(failed())?;
    let mut pruned = Pruned { batches: remove_turns(&mut db, keep).map_err(failed())?, bytes: 0 };
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

/// Does something that keeps the file busy, and leaves it to others afterwards.
#[expect(clippy::disallowed_methods, reason = "pruning blocks its thread, and a disk takes real time")]
fn step<T>(act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = act();
    std::thread::sleep(pause_after(began.elapsed()));
    done
}

fn pause_after(step: Duration) -> Duration {
    step.max(PAUSE)
}

/// Removes turns. How many batches they had.
fn remove_turns(db: &mut Connection, keep: Keep) -> rusqlite::Result<u64> {
    let by_age = keep.newer_than.map(|age| SystemTime::now().checked_sub(age).map_or(0, millis));
    // What is not listed is looked through for each turn. Each removal lists what has come since.
    list(db)?;
    let mut scan = Scan::begin(db)?;
    let mut removed = 0;
    loop {
        let is_large = match keep.at_most {
            Some(most) => used(db)? > most,
            None => false,
        };
        let Some(before) = (if is_large { Some(i64::MAX) } else { by_age }) else { break };
        let Some(turns) = scan.next(db, before)? else { break };
        if !turns.is_empty() {
            removed += step(|| turns::remove(db, &turns))?;
        }
    }
    Ok(removed)
}

/// Removes the sessions and epochs of which nothing is left, but for those of the newest, and for epochs that may lack their
/// end now or after a start of the machine, while one before them has left calls open: it may have started them (JR-7).
fn remove_empty(db: &mut Connection) -> rusqlite::Result<()> {
    while step(|| sessions::remove_empty(db))? > 0 {}
    db.execute(
        "DELETE FROM epoch_rows WHERE id < (SELECT max(id) FROM epoch_rows)
         AND NOT EXISTS (SELECT 1 FROM session_rows s WHERE s.epoch = epoch_rows.id)
         AND NOT (durability = 'process' AND ended_ms IS NULL AND EXISTS (SELECT 1 FROM call_rows c
             JOIN batch_rows b ON b.id = c.batch JOIN session_rows s ON s.id = b.session
             WHERE c.ended_ms IS NULL AND s.epoch < epoch_rows.id))",
        [],
    )?;
    Ok(())
}

/// Gives the room of removed rows back, some pages at a time.
fn give_back(db: &Connection) -> rusqlite::Result<()> {
    let mut free = pragma(db, "freelist_count")?;
    while free > 0 {
        step(|| vacuum(db))?;
        let left = pragma(db, "freelist_count")?;
        if left >= free {
            break;
        }
        free = left;
    }
    Ok(())
}

fn vacuum(db: &Connection) -> rusqlite::Result<()> {
    // Each row that the statement gives is a page.
    let mut vacuum = db.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
    let mut rows = vacuum.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JR-13: a writer has the file at least as long as a step had it.
    #[test]
    fn a_step_leaves_as_much_time_as_it_took() {
        assert_eq!(pause_after(Duration::from_secs(2)), Duration::from_secs(2));
        assert_eq!(pause_after(Duration::ZERO), PAUSE);
    }
}
