//! Waiting until no batch has a call without a result.
//!
//! Nobody counts the batches: who waits looks for them where a cancel finds them, and is told when one lands.

use crate::batch::BatchState;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;

/// Tells whoever waits of batches that land.
#[derive(Debug, Default)]
pub(crate) struct InAir {
    /// How many wait. Nearly always none, and then a landing tells nobody.
    waiting: AtomicUsize,
    landed: Notify,
}

impl InAir {
    /// A batch has the last of its results.
    pub(crate) fn landed(&self) {
        // Sequentially consistent with `none`, as what a batch counts its results by is: the one that lands sees who waits,
        // or who waits sees that it has landed.
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.landed.notify_waiters();
        }
    }

    /// Waits until none of these is in the air, those that come meanwhile included.
    pub(super) async fn none(&self, batches: impl Fn() -> Vec<Arc<BatchState>>) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(self);
        loop {
            // Not kept while they are waited for. Each landing looks at the last of them alone, however many there are.
            let mut left: Vec<_> = open(batches()).map(|batch| Arc::downgrade(&batch)).collect();
            if left.is_empty() {
                return;
            }
            while let Some(batch) = left.last() {
                // Made before the batch is looked at: a landing in between is not missed.
                let landed = self.landed.notified();
                if batch.upgrade().is_some_and(|batch| batch.is_open()) {
                    landed.await;
                } else {
                    left.pop();
                }
            }
        }
    }
}

/// Those of which a call has no result.
pub(super) fn open(batches: Vec<Arc<BatchState>>) -> impl Iterator<Item = Arc<BatchState>> {
    batches.into_iter().filter(|batch| batch.is_open())
}

/// Somebody who waits, or has gone.
struct Waiting<'a>(&'a InAir);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
