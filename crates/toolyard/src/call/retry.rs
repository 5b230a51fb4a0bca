//! From a failed attempt to the next one (RT-2, RT-6).
//!
//! ```text
//!   attempt fails ─► permits back ─► Delayed ── backoff ──► permits asked for anew ─► attempt
//!                                       └ cancelled: ends at once
//! ```
//!
//! A call that waits for its next attempt holds nothing and has no task but a timer (CC-5). It is not quiescent: the
//! next run of its batch waits for it.

use crate::call::{
    in_flight::InFlight,
    life::Life,
    progress::{Bid, Progress},
    ready::EndOnDrop,
};
use parking_lot::MutexGuard;
use std::time::Duration;
use toolyard_core::EventKind;

impl InFlight<'_> {
    /// Makes a call wait for its next attempt. Its permits have been released.
    pub(crate) fn try_again(self, progress: Box<Progress>, delay: Duration) {
        if self.is_detached() {
            return self.pass_on(Some(progress));
        }
        let (attempts, code) = (progress.attempts, progress.error.kind);
        let life = self.slot().life();
        // Under the lock, so that the terminal event cannot come first.
        self.stream_ends();
        self.emit(Some(attempts), || EventKind::Retry {
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            code,
        });
        self.wait_again(life, progress);
    }

    /// Makes a call wait for its next attempt. The caller has checked its life.
    pub(crate) fn wait_again(self, mut life: MutexGuard<'_, Life>, progress: Box<Progress>) {
        let not_before = progress.not_before;
        if self.flight().is_some() {
            // The flight may last longer than this one of its callers waits.
            self.set_deadline_alarm(progress.ready_at);
        }
        let watch = life.failed(progress);
        // Not earlier: a handler that is over must not dispatch any more.
        self.slot().reopen_parking();
        drop(life);
        drop(watch);
        if let Some(why) = self.stop_reason() {
            // The stop came while the call ran, and found nothing to end.
            self.refuse(|| why.error());
            return;
        }
        // The timer does not keep alive a batch that ends meanwhile.
        let (call, end_on_drop) = (self.downgrade(), EndOnDrop::new(self));
        self.engine().tasks.spawn(async move {
            tokio::time::sleep_until(not_before).await;
            if let Some(call) = call.upgrade() {
                call.at().acquire_again();
            }
            end_on_drop.disarm();
        });
    }

    /// Refunds what was paid for a next attempt that does not happen (RT-5).
    pub(crate) fn spare_retry(self, progress: Progress) {
        self.work().entry.guard().bucket.refund(progress.paid);
    }

    /// Acquires what the next attempt needs, if the call still waits for it.
    fn acquire_again(self) {
        let allowed = self.may_still_run();
        let mut life = self.slot().life();
        let Some(progress) = life.backed_off() else { return };
        let ready_at = self.engine().clock.now();
        let bid = Bid { ready_at, progress: Some(progress) };
        if let Err(error) = allowed.and_then(|()| self.recheck(ready_at, bid.first_ready_at())) {
            self.refuse_bid(life, bid, *error);
        } else if let Some(attempt) = self.acquire(life, bid, ready_at) {
            attempt.spawn();
        }
    }
}
