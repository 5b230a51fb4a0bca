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

/// Which epochs may lack their last records (JR-7), where `?1` is the present start of the machine: those that were not
/// synced and not closed, if the machine has been started since. Where starts have no names, one that another follows may;
/// the newest may be open.
const UNSURE: &str = "SELECT id FROM epoch_rows WHERE durability = 'process' AND ended_ms IS NULL
    AND CASE WHEN boot_id IS NULL THEN id < (SELECT max(id) FROM epoch_rows) ELSE boot_id IS NOT ?1 END";

/// The epochs of which the last records may be missing (JR-7).
pub(crate) fn unsure(db: &Connection) -> rusqlite::Result<Vec<i64>> {
    unsure_at(db, boot_id().as_deref())
}

fn unsure_at(db: &Connection, now: Option<&str>) -> rusqlite::Result<Vec<i64>> {
    db.prepare_cached(UNSURE)?.query_map([now], |row| row.get(0))?.collect()
}

/// Makes the table `unsure_epochs` of this connection, with the epochs of which the last records may be missing (JR-7).
pub(crate) fn note_unsure(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("CREATE TEMP TABLE IF NOT EXISTS unsure_epochs (id INTEGER PRIMARY KEY)")?;
    db.execute(&format!("INSERT INTO temp.unsure_epochs {UNSURE}"), [boot_id()])?;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether an epoch may lack its end at a start of the machine, with another one after it or not.
    fn lacks(epoch: (&str, Option<i64>, Option<&str>), now: Option<&str>, is_followed: bool) -> bool {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        crate::schema::create(&mut db).expect("it is new");
        let sql = "INSERT INTO epoch_rows (durability, ended_ms, boot_id, pid, started_ms) VALUES (?1, ?2, ?3, 1, 0)";
        let (durability, ended, boot) = epoch;
        db.execute(sql, params![durability, ended, boot]).expect("the tables are there");
        if is_followed {
            db.execute(sql, params!["process", None::<i64>, now]).expect("the tables are there");
        }
        let unsure = unsure_at(&db, now).expect("it can be read");
        assert!(!unsure.contains(&2), "the newest is open");
        unsure.contains(&1)
    }

    /// JR-7: an unclean end alone loses nothing, and neither does a start of the machine after a clean end or synced commits.
    #[test]
    fn records_are_missing_only_after_an_unclean_end_and_a_start() {
        let before = Some("a");
        for is_followed in [false, true] {
            let lacks = |epoch| lacks(epoch, Some("b"), is_followed);
            assert!(lacks(("process", None, before)));
            assert!(!lacks(("process", None, Some("b"))));
            assert!(!lacks(("process", Some(1), before)) && !lacks(("full", None, before)));
        }
    }

    /// JR-7: where the system does not name its starts, an epoch without a clean end counts once another one follows.
    #[test]
    fn without_names_of_starts_the_newest_may_be_open() {
        let lacks = |boot, is_followed| lacks(("process", None, boot), None, is_followed);
        assert!(lacks(None, true) && lacks(Some("a"), true));
        assert!(!lacks(None, false) && lacks(Some("a"), false));
    }
}
