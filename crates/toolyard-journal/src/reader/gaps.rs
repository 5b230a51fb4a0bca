//! Which records may be missing after a start of the machine (JR-7).

use super::{EpochRow, Reader};
use crate::{
    epoch,
    error::JournalError,
    listing::of_sessions,
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
    /// The epochs of [`Durability::Process`](crate::Durability::Process) that were not closed and after which the machine has
    /// started again, the oldest first: what they recorded last may be missing, so a call of which no attempt is recorded may
    /// have been started, one that an epoch before has left open too. Where the system does not name its starts (JR-7), each
    /// such epoch that another one follows is among them.
    ///
    /// # Errors
    /// [`JournalError`] if the file cannot be read, or has what makes no sense.
    pub fn gaps(&self) -> Result<Vec<Gap>, JournalError> {
        let _snapshot = self.snapshot()?;
        let (epochs, unsure) = (self.epochs()?, epoch::unsure(&self.db).map_err(self.failed())?);
        let mut gaps = Vec::new();
        for (at, epoch) in epochs.iter().enumerate().filter(|(_, epoch)| unsure.contains(&epoch.epoch)) {
            gaps.push(Gap { epoch: epoch.epoch, since: self.last_record(epoch, epochs.get(at + 1))? });
        }
        Ok(gaps)
    }

    /// The last epoch whose calls, if they have no end, may have been started without a record of that; 0 if there is none.
    pub(crate) fn unsure_until(&self) -> Result<i64, JournalError> {
        Ok(epoch::newest_unsure(&self.db).map_err(self.failed())?.unwrap_or(0))
    }

    /// When the last record of an epoch came. What a later epoch has added to its rows is none of them.
    fn last_record(&self, epoch: &EpochRow, next: Option<&EpochRow>) -> Result<SystemTime, JournalError> {
        let sql = format!(
            "WITH s AS (SELECT id, opened_ms FROM session_rows WHERE epoch = ?1),
                b AS MATERIALIZED (SELECT o.id, o.arrived_ms FROM batch_rows o WHERE o.id IN ({})),
                c AS MATERIALIZED (SELECT id, arrived_ms, ended_ms FROM call_rows WHERE batch IN (SELECT id FROM b))
            SELECT max(at) FROM (
                SELECT opened_ms AS at FROM s UNION ALL SELECT arrived_ms FROM b
                UNION ALL SELECT arrived_ms FROM c UNION ALL SELECT ended_ms FROM c
                UNION ALL SELECT made_ms FROM fork_rows WHERE session IN (SELECT id FROM s)
                UNION ALL SELECT given_ms FROM cancel_rows WHERE session IN (SELECT id FROM s)
                UNION ALL SELECT started_ms FROM attempt_rows WHERE call IN (SELECT id FROM c)
                UNION ALL SELECT ended_ms FROM attempt_rows WHERE call IN (SELECT id FROM c)
                UNION ALL SELECT asked_ms FROM question_rows WHERE call IN (SELECT id FROM c)
                UNION ALL SELECT answered_ms FROM answer_rows WHERE call IN (SELECT id FROM c)
            ) WHERE at < ?2",
            of_sessions("SELECT id FROM s")
        );
        let before = next.map_or(i64::MAX, |next| millis(next.started));
        let last = self.db.query_row(&sql, params![epoch.epoch, before], |row| row.get::<_, Option<i64>>(0));
        Ok(last.map_err(self.failed())?.map_or(epoch.started, time))
    }
}
