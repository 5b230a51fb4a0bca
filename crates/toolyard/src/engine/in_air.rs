//! How many batches have calls without a result, for whoever waits until none has.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Counts batches in the air. One count a batch, none a call.
#[derive(Debug, Default)]
pub(crate) struct InAir {
    batches: AtomicUsize,
    /// How many wait for the last to land. Nearly always none, and then a landing tells nobody.
    waiting: AtomicUsize,
    landed: Notify,
}

impl InAir {
    pub(crate) fn begin(&self) {
        self.batches.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn end(&self) {
        // Sequentially consistent with `none`: the last to land sees who waits, or who waits sees that none is left.
        if self.batches.fetch_sub(1, Ordering::SeqCst) == 1 && self.waiting.load(Ordering::SeqCst) > 0 {
            self.landed.notify_waiters();
        }
    }

    pub(super) fn count(&self) -> usize {
        self.batches.load(Ordering::SeqCst)
    }

    /// Waits until no batch is in the air.
    pub(super) async fn none(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
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

/// Somebody who waits, or has gone.
struct Waiting<'a>(&'a InAir);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
