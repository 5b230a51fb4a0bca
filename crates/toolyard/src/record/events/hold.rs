//! Holds calls back while events cannot be written.

use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;

/// Added for each full queue.
const FULL: u32 = 1;
/// Added for each broken writer.
const BROKEN: u32 = 1 << 16;

/// How many queues are full and how many writers are broken. One word, because it is checked once per call and almost
/// always zero.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    state: AtomicU32,
    changed: Notify,
}

impl Hold {
    /// Whether any queue is full or any writer broken. Relaxed: a call that passes at the same instant counts as one
    /// that came just before.
    pub(crate) fn is_on(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }

    /// Whether new calls have to wait.
    pub(crate) fn is_full(&self) -> bool {
        self.state.load(Ordering::Acquire) & (BROKEN - 1) != 0
    }

    /// Whether calls with side effects must not run.
    pub(crate) fn is_broken(&self) -> bool {
        self.state.load(Ordering::Acquire) >= BROKEN
    }

    pub(crate) fn filled(&self) {
        self.state.fetch_add(FULL, Ordering::AcqRel);
    }

    pub(crate) fn emptied(&self) {
        self.state.fetch_sub(FULL, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    pub(crate) fn mark_broken(&self) {
        self.state.fetch_add(BROKEN, Ordering::AcqRel);
    }

    /// Waits until no queue is full.
    pub(crate) async fn room(&self) {
        loop {
            // Created before the check, so that a change in between is not missed.
            let changed = self.changed.notified();
            if !self.is_full() {
                return;
            }
            changed.await;
        }
    }
}
