//! How many batches have calls without a result, for whoever waits until none has.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Counts batches in the air. One count a batch, none a call.
#[derive(Debug, Default)]
pub(crate) struct InAir {
    batches: AtomicUsize,
    landed: Notify,
}

impl InAir {
    pub(crate) fn begin(&self) {
        self.batches.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end(&self) {
        if self.batches.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.landed.notify_waiters();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.batches.load(Ordering::Acquire)
    }

    /// Waits until no batch is in the air.
    pub(super) async fn none(&self) {
        loop {
            // Made before the count is read: a landing in between is not missed.
            let landed = self.landed.notified();
            if self.count() == 0 {
                return;
            }
            landed.await;
        }
    }
}
