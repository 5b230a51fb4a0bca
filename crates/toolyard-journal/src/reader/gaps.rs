//! Which records may be missing after a start of the machine (JR-7).

use super::{EpochRow, Reader};
use crate::{
    epoch::boot_id,
    error::JournalError,
    settings::Durability,
    stamp::{millis, time},
};
use rusqlite::params;
use std::time::SystemTime;

/// An epoch of which the last records may be missing (JR-7).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// The epoch.
    pub epoch: i64,
    /// The time of its last record that is here. What came then or later may be missing.
    pub since: SystemTime,
}

impl Reader {
    /// The epochs of [`Durability::Process`] that were not closed and after which the machine has started again, the oldest
    /// first: what they recorded last may be missing, so a call of which no attempt is recorded may have been started.
    /// Where the system does not name its starts (JR-7), each such epoch that another one follows is among them.
    ///
    /// # Errors
    /// [`JournalError`] if the file cannot be read, or has what makes no sense.
    pub fn gaps(&self) -> Result<Vec<Gap>, JournalError> {
        let _snapshot = self.snapshot()?;
        let (epochs, now) = (self.epochs()?, boot_id());
        let mut gaps = Vec::new();
        for (at, epoch) in epochs.iter().enumerate() {
            let next = epochs.get(at + 1);
            // Where starts have no names, one that nothing follows may be open.
            if lacks_its_end(epoch, now.as_deref()) && (next.is_some() || epoch.boot_id.is_some()) {
                gaps.push(Gap { epoch: epoch.epoch, since: self.last_record(epoch, next)? });
            }
        }
        Ok(gaps)
    }

    /// The epochs of which the last records may be missing, as a list of SQL. The newest may still be written.
    pub(crate) fn unsure_epochs(&self) -> Result<String, JournalError> {
        let (epochs, now) = (self.epochs()?, boot_id());
        let older = epochs.split_last().map_or(&[][..], |(_, older)| older);
        let unsure = older.iter().filter(|epoch| lacks_its_end(epoch, now.as_deref()));
        Ok(unsure.map(|epoch| epoch.epoch.to_string()).collect::<Vec<_>>().join(", "))
    }

    /// When the last record of an epoch came. What a later epoch has added to its rows is none of them.
    fn last_record(&self, epoch: &EpochRow, next: Option<&EpochRow>) -> Result<SystemTime, JournalError> {
        let sql = "
            WITH s AS (SELECT id, opened_ms FROM session_rows WHERE epoch = ?1),
                b AS (SELECT id, arrived_ms FROM batch_rows WHERE session IN (SELECT id FROM s)),
                c AS (SELECT id, arrived_ms, ended_ms FROM call_rows WHERE batch IN (SELECT id FROM b))
            SELECT max(at) FROM (
                SELECT opened_ms AS at FROM s UNION ALL SELECT arrived_ms FROM b
                UNION ALL SELECT arrived_ms FROM c UNION ALL SELECT ended_ms FROM c
                UNION ALL SELECT made_ms FROM fork_rows WHERE session IN (SELECT id FROM s)
                UNION ALL SELECT given_ms FROM cancel_rows WHERE session IN (SELECT id FROM s)
                UNION ALL SELECT started_ms FROM attempt_rows WHERE call IN (SELECT id FROM c)
                UNION ALL SELECT ended_ms FROM attempt_rows WHERE call IN (SELECT id FROM c)
                UNION ALL SELECT asked_ms FROM question_rows WHERE call IN (SELECT id FROM c)
                UNION ALL SELECT answered_ms FROM answer_rows WHERE call IN (SELECT id FROM c)
            ) WHERE at < ?2";
        let before = next.map_or(i64::MAX, |next| millis(next.started));
        let last = self.db.query_row(sql, params![epoch.epoch, before], |row| row.get::<_, Option<i64>>(0));
        Ok(last.map_err(self.failed())?.map_or(epoch.started, time))
    }
}

/// Whether the last records of an epoch may be missing: it was not synced, was not closed, and the machine, whose present
/// start is `now`, has been started since, as far as that can be told (JR-7).
pub(crate) fn lacks_its_end(epoch: &EpochRow, now: Option<&str>) -> bool {
    let is_lost = epoch.durability == Durability::Process && epoch.ended.is_none();
    is_lost && (epoch.boot_id.is_none() || epoch.boot_id.as_deref() != now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(durability: Durability, is_closed: bool, boot: Option<&str>) -> EpochRow {
        let (boot_id, started) = (boot.map(str::to_owned), SystemTime::UNIX_EPOCH);
        EpochRow {
            epoch: 1,
            engine: None,
            boot_id,
            pid: 1,
            durability,
            started,
            ended: is_closed.then_some(started),
        }
    }

    /// JR-7: an unclean end alone loses nothing, and neither does a start of the machine after a clean end or synced commits.
    #[test]
    fn records_are_missing_only_after_an_unclean_end_and_a_start() {
        use Durability::{Full, Process};
        let lacks =
            |durability, is_closed, boot| lacks_its_end(&epoch(durability, is_closed, boot), Some("b"));
        assert!(lacks(Process, false, Some("a")) && lacks(Process, false, None));
        assert!(!lacks(Process, false, Some("b")));
        assert!(!lacks(Process, true, Some("a")) && !lacks(Full, false, Some("a")));
    }
}
