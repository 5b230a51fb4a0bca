//! Calls whose events cannot be written: if a queue is full they wait, and if a writer is broken those with side
//! effects do not run (OB-3, PO-6).

use crate::call::{
    in_flight::InFlight,
    life::Life,
    ready::{EndOnDrop, Readiness},
    refusals::Refusal,
};
use parking_lot::MutexGuard;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use toolyard_core::CallError;

/// How long a call waits for room in an event queue.
const ROOM_WAIT: Duration = Duration::from_secs(30);

impl<'a> InFlight<'a> {
    /// Checks whether a call may proceed, and returns its phase if so. Otherwise it waits for room and holds nothing,
    /// or has ended.
    #[cold]
    pub(crate) fn pass_sinks(
        self,
        life: MutexGuard<'a, Life>,
        ready_at: Instant,
        now: Instant,
    ) -> Option<MutexGuard<'a, Life>> {
        let hold = self.engine().bus.hold();
        let room_by = ready_at + ROOM_WAIT;
        let refusal = match () {
            () if hold.is_broken() && self.changes_something() => Refusal::SinksBroken,
            () if !hold.is_full() => return Some(life),
            () if room_by <= now => Refusal::SinksFull,
            () => {
                drop(life);
                self.wait_for_room(ready_at, room_by);
                return None;
            }
        };
        self.refuse_in(life, refusal.error());
        None
    }

    /// Why a call whose turn has come, for the first time or again, may not start: its events would not be written.
    #[inline]
    pub(crate) fn unrecorded(self) -> Option<Box<CallError>> {
        let hold = self.engine().bus.hold();
        let refused = hold.is_on() && hold.is_broken() && self.changes_something();
        refused.then(|| Refusal::SinksBroken.boxed())
    }

    fn changes_something(self) -> bool {
        !self.work().entry.spec().side_effects.is_read_only()
    }

    /// Continues with a call when there is room or its time is up. This does not keep alive a batch that ends
    /// meanwhile.
    fn wait_for_room(self, ready_at: Instant, room_by: Instant) {
        let engine = &self.engine();
        let hold = engine.bus.hold().clone();
        let until = self.deadline_of(ready_at).map_or(room_by, |deadline| deadline.min(room_by));
        let (call, end_on_drop) = (self.downgrade(), EndOnDrop::new(self));
        engine.tasks.spawn(async move {
            // Whether there is room is checked again below.
            let _ = timeout_at(until, hold.room()).await;
            if let Some(call) = call.upgrade() {
                call.at().proceed_after_wait(ready_at);
            }
            end_on_drop.disarm();
        });
    }

    fn proceed_after_wait(self, ready_at: Instant) {
        let allowed = self.may_still_run();
        let life = self.slot().life();
        if !life.is_waiting() {
            return;
        }
        let now = self.engine().clock.now();
        if let Some(attempt) = self.proceed(life, Readiness { allowed, ready_at, now }) {
            attempt.spawn();
        }
    }
}
