//! What holds calls back whose events could not be written.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;

/// One queue that is full.
const FULL: u32 = 1;
/// One writer that is broken.
const BROKEN: u32 = 1 << 16;

/// How many queues are full and how many writers are broken, in one word: what is nearly always zero is looked at once a
/// call.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    state: AtomicU32,
    changed: Notify,
}

impl Hold {
    /// Whether there is anything to look at. Relaxed: a call that is let through in the same instant is one that came
    /// just before.
    pub(crate) fn is_on(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }

    /// Whether new calls are to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.state.load(Ordering::Acquire) & (BROKEN - 1) != 0
    }

    /// Whether calls that change something are not to run.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.load(Ordering::Acquire) >= BROKEN
    }

    pub(super) fn filled(&self) {
        self.state.fetch_add(FULL, Ordering::AcqRel);
    }

    pub(super) fn emptied(&self) {
        self.state.fetch_sub(FULL, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    pub(super) fn broke(&self) {
        self.state.fetch_add(BROKEN, Ordering::AcqRel);
    }

    /// Waits until no queue is full.
    pub(crate) async fn room(&self) {
        loop {
            // Made before the look: what is written in between is not missed.
            let changed = self.changed.notified();
            if !self.is_full() {
                return;
            }
            changed.await;
        }
    }
}
