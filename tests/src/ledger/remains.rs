//! What a life of the engine leaves in its ledger, for one that has another runtime and so another clock.

use super::{Kept, Ledger, Op};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolyard::{OpenTurn, SessionId};

/// The records that outlive a life. Times in them count from now on.
#[derive(Default)]
pub struct Remains(Vec<(Op, Duration)>);

impl Remains {
    /// The same when so much time has gone by.
    #[must_use]
    pub fn later(&self, after: Duration) -> Self {
        Self(self.0.iter().map(|(op, left)| (op.clone(), left.saturating_sub(after))).collect())
    }
}

impl Ledger {
    /// What this life leaves if it ends now. Of the records behind the last one that is durable and was waited for, `lost`
    /// of how many there are is lost: these are the last of them.
    pub fn remains(&self, lost: impl FnOnce(usize) -> usize) -> Remains {
        let now = Instant::now();
        let records = self.records.lock();
        let is_sure = |kept: &Kept| kept.is_waited_for && kept.durable_at <= now;
        let unsure = records.len() - records.iter().rposition(is_sure).map_or(0, |last| last + 1);
        let kept = records.len() - lost(unsure).min(unsure);
        let left = |op: &Op| match op {
            Op::Attempt { until, .. } => until.saturating_duration_since(now),
            _ => Duration::ZERO,
        };
        Remains(records.iter().take(kept).map(|kept| (kept.op.clone(), left(&kept.op))).collect())
    }

    /// The ledger that the next life finds, as slow as this one says.
    pub fn of(remains: &Remains, pace: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let now = Instant::now();
        let kept = |(op, left): &(Op, Duration)| {
            let op = match op.clone() {
                Op::Attempt { call, attempt, .. } => Op::Attempt { call, attempt, until: now + *left },
                op => op,
            };
            Kept { op, durable_at: now, is_waited_for: true }
        };
        let ledger = Self::paced(pace);
        *ledger.records.lock() = remains.0.iter().map(kept).collect();
        ledger
    }

    /// The turns that are open for the life that comes next.
    pub fn open_in_next_life(&self) -> Vec<OpenTurn> {
        let mut world = self.world();
        world.epoch = None;
        world.open_turns()
    }

    /// The turn of a session that has a batch whose first call has this id, and its agent.
    pub fn turn_of(&self, session: &SessionId, first: &str) -> Option<(Arc<str>, u64)> {
        let records = self.records.lock();
        records.iter().find_map(|kept| match &kept.op {
            Op::Batch(batch) if batch.session == *session && batch.parent.is_none() => {
                let is_it = batch.calls.first().is_some_and(|call| call.id.as_str() == first)
                    || pushed_first(&records, session, batch.batch) == Some(first);
                is_it.then(|| (batch.agent.as_str().into(), batch.turn))
            }
            _ => None,
        })
    }

    /// Whether a session was opened, as far as the records say.
    pub fn knows(&self, session: &SessionId) -> bool {
        let is_it = |kept: &Kept| matches!(&kept.op, Op::Session { session: it, .. } if it == session);
        self.records.lock().iter().any(is_it)
    }
}

/// The id of the first call that was pushed into a batch.
fn pushed_first<'a>(records: &'a [Kept], session: &SessionId, number: u64) -> Option<&'a str> {
    records.iter().find_map(|kept| match &kept.op {
        Op::Pushed { session: of, batch, calls } if of == session && *batch == number => {
            calls.first().map(|call| call.id.as_str())
        }
        _ => None,
    })
}
