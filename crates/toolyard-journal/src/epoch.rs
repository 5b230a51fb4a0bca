//! Epochs: each opening of a journal is one, and only the newest one's writer writes (JR-4, JR-7).

use crate::{settings::Durability, stamp::millis};
use rusqlite::{Connection, params};
use std::time::SystemTime;

/// The number of an opening, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EpochId(pub(crate) i64);

/// Begins an epoch.
pub(crate) fn begin(db: &Connection, durability: Durability) -> rusqlite::Result<EpochId> {
    db.execute(
        "INSERT INTO epoch_rows (boot_id, pid, durability, started_ms) VALUES (?1, ?2, ?3, ?4)",
        params![boot_id(), std::process::id(), durability.as_str(), millis(SystemTime::now())],
    )?;
    Ok(EpochId(db.last_insert_rowid()))
}

/// A table of one connection: the epochs of which the last records may be missing.
pub(crate) const UNSURE: &str = "CREATE TEMP TABLE IF NOT EXISTS unsure_epochs (id INTEGER PRIMARY KEY)";

/// Notes, for this connection, the epochs before this one of which the last records may be missing (JR-7).
pub(crate) fn note_unsure(db: &Connection, epoch: EpochId) -> rusqlite::Result<()> {
    db.execute_batch(UNSURE)?;
    db.execute(
        "INSERT INTO temp.unsure_epochs SELECT id FROM epoch_rows
         WHERE id < ?1 AND durability = 'process' AND ended_ms IS NULL AND (boot_id IS NULL OR boot_id IS NOT ?2)",
        params![epoch.0, boot_id()],
    )?;
    Ok(())
}

/// Whether this epoch is the newest. Asked within each transaction that writes.
pub(crate) fn is_newest(db: &Connection, epoch: EpochId) -> rusqlite::Result<bool> {
    let newest: Option<i64> =
        db.prepare_cached("SELECT max(id) FROM epoch_rows")?.query_row([], |row| row.get(0))?;
    Ok(newest == Some(epoch.0))
}

/// Ends an epoch cleanly.
pub(crate) fn end(db: &Connection, epoch: EpochId) -> rusqlite::Result<()> {
    db.execute(
        "UPDATE epoch_rows SET ended_ms = ?2 WHERE id = ?1",
        params![epoch.0, millis(SystemTime::now())],
    )?;
    Ok(())
}

/// Which start of the machine this is, where the system says so.
pub(crate) fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}
