//! The batches of a turn.

use super::resend::Earlier;
use crate::{
    batch::StreamCalls,
    call::{BatchState, Stop, WeakList},
};
use std::{collections::BTreeSet, sync::Arc};
use toolyard_core::Outcome;

/// The batches that were dispatched and opened in a turn.
#[derive(Default)]
pub(super) struct TurnBatches {
    pub(super) is_cancelled: bool,
    /// Their results are kept as long as the turn, unless it keeps none.
    all: Vec<TurnBatch>,
    /// Those that may have calls without a result.
    open: WeakList<BatchState>,
    open_streams: WeakList<StreamCalls>,
    /// The number of the latest batch: of one that is here, was let go of, or was left open by an earlier life of the engine.
    latest: Option<u64>,
    /// The calls of such a batch that were cancelled while it was not here.
    cancelled: BTreeSet<u32>,
}

/// What a cancel of one call is for.
pub(super) enum CallCancel {
    /// A batch that is here.
    InFlight { number: u64, batch: TurnBatch },
    /// One that is not: its record alone can have it.
    Ahead { number: u64 },
}

/// A batch of a turn.
#[derive(Clone)]
pub(super) enum TurnBatch {
    /// It came as a whole.
    Whole(Arc<BatchState>),
    /// Its calls come one by one.
    Open(Arc<StreamCalls>),
}

/// The batches that may have calls without a result. To be dropped outside of locks.
pub(super) struct InFlight {
    whole: Vec<Arc<BatchState>>,
    streams: Vec<Arc<StreamCalls>>,
}

impl TurnBatches {
    pub(super) fn all(&self) -> &[TurnBatch] {
        &self.all
    }

    pub(super) fn latest(&self) -> Option<TurnBatch> {
        self.all.last().cloned()
    }

    /// Those of a turn that an earlier life of the engine has left open, with the number of the latest.
    pub(super) fn taken_up(is_cancelled: bool, latest: Option<u64>) -> Self {
        let mut batches = Self::default();
        (batches.is_cancelled, batches.latest) = (is_cancelled, latest);
        batches
    }

    /// What the cancel of a call of the latest batch is for; `None` if there is none, or if it was recorded before.
    pub(super) fn cancel_at(&mut self, index: u32) -> Option<CallCancel> {
        let number = self.latest?;
        // The batches of a turn that is taken up come in any order.
        let latest = self.all.iter().rfind(|batch| batch.number() == number);
        match latest.cloned() {
            Some(batch) => Some(CallCancel::InFlight { number, batch }),
            None => self.cancelled.insert(index).then_some(CallCancel::Ahead { number }),
        }
    }

    /// Adds a batch. Returns which of its calls were cancelled before.
    pub(super) fn add_whole(&mut self, batch: &Arc<BatchState>) -> BTreeSet<u32> {
        let is_latest = self.latest <= Some(batch.number());
        let is_known = self.latest == Some(batch.number());
        // Others of a turn that is taken up may come before it.
        let cancelled = if is_latest { std::mem::take(&mut self.cancelled) } else { BTreeSet::new() };
        self.latest = self.latest.max(Some(batch.number()));
        self.all.push(TurnBatch::Whole(batch.clone()));
        self.open.push(batch);
        if is_known { cancelled } else { BTreeSet::new() }
    }

    pub(super) fn add_open(&mut self, calls: &Arc<StreamCalls>) {
        self.latest = Some(calls.number());
        self.cancelled.clear();
        self.all.push(TurnBatch::Open(calls.clone()));
        self.open_streams.push(calls);
    }

    /// Lets go of a batch whose results are not kept.
    pub(super) fn forget(&mut self, batch: &Arc<BatchState>) {
        self.all.retain(|known| !matches!(known, TurnBatch::Whole(known) if Arc::ptr_eq(known, batch)));
    }

    /// Lets go of open batches whose results their holders have taken. Returns them, to be dropped outside of locks.
    pub(super) fn forget_taken(&mut self) -> Vec<TurnBatch> {
        let is_taken = |known: &mut TurnBatch| matches!(known, TurnBatch::Open(calls) if calls.is_let_go());
        self.all.extract_if(.., is_taken).collect()
    }

    pub(super) fn in_flight(&mut self) -> InFlight {
        let whole = self.open.retain(BatchState::is_open);
        InFlight { whole, streams: self.open_streams.retain(StreamCalls::is_open) }
    }

    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.open.iter().count() + self.open_streams.iter().count()
    }
}

impl InFlight {
    /// Cancels the calls with this id that have no result. Returns whether there are any.
    pub(super) fn cancel_calls(&self, id: &str) -> bool {
        let whole = self.whole.iter().map(|batch| batch.cancel_calls(id)).sum::<usize>();
        let streamed = self.streams.iter().filter(|calls| calls.cancel_calls(id)).count();
        whole + streamed > 0
    }
}

impl TurnBatch {
    /// Stops its calls, those still to come included.
    pub(super) fn stop(&self, why: Stop) {
        match self {
            Self::Whole(batch) => batch.stop(why),
            Self::Open(calls) => calls.stop(why),
        }
    }

    /// The number of the batch in its session.
    pub(super) fn number(&self) -> u64 {
        match self {
            Self::Whole(batch) => batch.number(),
            Self::Open(calls) => calls.number(),
        }
    }

    /// The results so far, one place per call.
    pub(super) fn finished(&self) -> Vec<Option<Outcome>> {
        match self {
            Self::Whole(batch) => batch.finished(),
            Self::Open(calls) => calls.finished(),
        }
    }

    /// Cancels the call with this index. Returns whether it is in flight.
    pub(super) fn cancel_call_at(&self, index: u32) -> bool {
        match self {
            Self::Whole(batch) => batch.cancel_call_at(index),
            Self::Open(calls) => calls.cancel_call_at(index),
        }
    }

    /// Its results so far, to be found by their calls.
    pub(super) fn answers(&self) -> Earlier {
        match self {
            Self::Whole(batch) => Earlier::Whole(batch.clone()),
            Self::Open(calls) => Earlier::Streamed(calls.answers()),
        }
    }
}

/// A handler that runs on may keep the calls above it, and so their batch; it must not keep their results.
impl Drop for TurnBatches {
    fn drop(&mut self) {
        for batch in self.all.drain(..) {
            match batch {
                TurnBatch::Whole(batch) => {
                    if let Err(shared) = Arc::try_unwrap(batch) {
                        shared.drop_results();
                    }
                }
                TurnBatch::Open(calls) => calls.turn_is_gone(),
            }
        }
    }
}
