//! Epochs: each opening of a journal is one, and only the newest one's writer writes (JR-4, JR-7).

use crate::{settings::Durability, stamp::millis};
use rusqlite::{Connection, params};
use std::time::SystemTime;

/// The number of an opening, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EpochId(pub(crate) i64);

/// Begins an epoch. That is synced whatever its durability: if all that comes in it is lost with the power, the next one must
/// know that there was one.
pub(crate) fn begin(db: &Connection, durability: Durability) -> rusqlite::Result<EpochId> {
    db.execute_batch(Durability::Full.pragmas())?;
    db.execute(
        "INSERT INTO epoch_rows (boot_id, pid, durability, started_ms) VALUES (?1, ?2, ?3, ?4)",
        params![boot_id(), std::process::id(), durability.as_str(), millis(SystemTime::now())],
    )?;
    let epoch = EpochId(db.last_insert_rowid());
    db.execute_batch(durability.pragmas())?;
    Ok(epoch)
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

/// The newest epoch of which the last records may be missing. A call that has no end, of this epoch or of one before, may have
/// been started without a record of that: any epoch may take up what those before it have left (JR-7).
pub(crate) fn newest_unsure(db: &Connection) -> rusqlite::Result<Option<i64>> {
    Ok(unsure(db)?.into_iter().max())
}

/// Makes the table `unsure_epochs` of this connection, with the epochs whose calls, if they have no end, may have been started
/// without a record of that (JR-7).
pub(crate) fn note_unsure(db: &Connection) -> rusqlite::Result<()> {
    db.execute_batch("CREATE TEMP TABLE IF NOT EXISTS unsure_epochs (id INTEGER PRIMARY KEY)")?;
    let sql = "INSERT INTO temp.unsure_epochs SELECT id FROM epoch_rows WHERE id <= ?1";
    db.execute(sql, [newest_unsure(db)?])?;
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

    /// JR-7: the beginning alone is synced; what comes after it as the durability says.
    #[test]
    fn after_its_beginning_an_epoch_commits_as_it_is_told() {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        crate::schema::create(&mut db).expect("it is new");
        for (durability, expected) in [(Durability::Process, (1, 0)), (Durability::Full, (2, 1))] {
            begin(&db, durability).expect("it can be written");
            let pragma = |name| crate::schema::pragma(&db, name).expect("it can be read");
            assert_eq!((pragma("synchronous"), pragma("fullfsync")), expected);
        }
    }

    /// JR-7: an epoch of which records are missing may have taken up what those before it have left.
    #[test]
    fn an_epoch_before_an_unsure_one_is_unsure_too() {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        crate::schema::create(&mut db).expect("it is new");
        for durability in ["full", "process", "process"] {
            let sql =
                "INSERT INTO epoch_rows (durability, boot_id, pid, started_ms) VALUES (?1, 'another', 1, 0)";
            db.execute(sql, [durability]).expect("the tables are there");
        }
        db.execute("UPDATE epoch_rows SET ended_ms = 1 WHERE id = 3", []).expect("it can be written");
        note_unsure(&db).expect("it can be read");
        let noted = db.query_row("SELECT count(*), max(id) FROM unsure_epochs", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        });
        assert_eq!((noted, newest_unsure(&db)), (Ok((2, 2)), Ok(Some(2))));
    }
}
