//! Turns that nobody resumes end (JR-10).

use crate::{
    apply::{Ends, end_open},
    epoch::EpochId,
    op::whole,
    stamp::millis,
};
use rusqlite::{Connection, TransactionBehavior, params};
use std::time::{Duration, SystemTime};
use toolyard::{CallError, ErrorKind, Reason};

/// The batches that an epoch has left open, if one after it began before the time `?1` and did not take them up either, with
/// all that belongs to them. The epoch that begins now, `?2`, has yet to.
const LEFT: &str = "b.session IN (SELECT s.id FROM session_rows s JOIN epoch_rows later ON later.id > s.epoch
    WHERE later.started_ms <= ?1 AND later.id < ?2)";

/// Ends the calls of turns that were left open for so long.
pub(crate) fn expire(db: &mut Connection, epoch: EpochId, keep_open: Duration) -> rusqlite::Result<()> {
    let now = millis(SystemTime::now());
    let before = now.saturating_sub(whole(keep_open.as_millis()));
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let message = "nobody has resumed its turn in time";
    let of = |kind| CallError::new(kind, message).with_reason(Reason::Expired);
    let values = params![before, epoch.0, now];
    end_open(&tx, Ends::Started, &of(ErrorKind::Interrupted), LEFT, values)?;
    end_open(&tx, Ends::Others, &of(ErrorKind::Cancelled).not_started(), LEFT, values)?;
    tx.execute(
        &format!(
            "UPDATE batch_rows SET calls = (SELECT count(*) FROM call_rows c WHERE c.batch = batch_rows.id)
             WHERE calls IS NULL AND id IN (SELECT b.id FROM batch_rows b WHERE b.calls IS NULL AND {LEFT})"
        ),
        params![before, epoch.0],
    )?;
    tx.commit()
}
