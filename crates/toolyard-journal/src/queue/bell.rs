//! How the writer waits for what is given.
//!
//! ```text
//!   nothing is there ─► it looks out, and lets others run ─┬─ something was given ─► it goes on
//!                                                          └─ nothing for 0.1 ms ─► it sleeps until it is woken
//! ```
//!
//! Under load what it waits for is given within microseconds. To sleep until then takes longer, and whoever gives it would
//! have to wake a processor for it, for each of them; a processor that sleeps may also not be found by the system, which then
//! lets those who give records and the writer take turns on one.

use super::waiting::Waiting;
use parking_lot::{Condvar, MutexGuard};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// For how long the writer looks out before it sleeps.
const LOOK: Duration = Duration::from_micros(100);

/// What wakes the writer. It has cache lines of its own: the writer looks at it while others use the queue.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Bell {
    /// Whether it was rung since the writer began to wait.
    is_rung: AtomicBool,
    woken: Condvar,
}

impl Bell {
    /// Lets the writer look at what waits. To be called with the lock of the queue, under which that has changed.
    pub(super) fn ring(&self) {
        self.mark();
        self.wake();
    }

    /// Is seen by a writer that looks out. To be called with the lock, and [`wake`](Self::wake) after it was released.
    pub(super) fn mark(&self) {
        self.is_rung.store(true, Ordering::Relaxed);
    }

    /// Wakes a writer that sleeps.
    pub(super) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Sleeps until it is rung.
    pub(super) fn wait(&self, waiting: &mut MutexGuard<'_, Waiting>) {
        self.woken.wait(waiting);
    }

    /// Sleeps until it is rung, or for this long. Whether it was rung.
    pub(super) fn wait_for(&self, waiting: &mut MutexGuard<'_, Waiting>, time: Duration) -> bool {
        !self.woken.wait_for(waiting, time).timed_out()
    }

    /// Sleeps until it is rung, or until then. Whether it was rung.
    pub(super) fn wait_until(&self, waiting: &mut MutexGuard<'_, Waiting>, until: Instant) -> bool {
        !self.woken.wait_until(waiting, until).timed_out()
    }

    /// The same, where it is likely to be rung soon: looks out, without the lock, before it sleeps.
    pub(super) fn expect_until(&self, waiting: &mut MutexGuard<'_, Waiting>, until: Instant) -> bool {
        self.is_rung.store(false, Ordering::Relaxed);
        MutexGuard::unlocked(waiting, || self.look_out(until));
        // Whoever has had the lock meanwhile has rung with it.
        self.is_rung.load(Ordering::Relaxed) || self.wait_until(waiting, until)
    }

    /// Where other programs have the processors, this takes as long as they run.
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, whose clock is the machine's")]
    fn look_out(&self, until: Instant) {
        let until = until.min(Instant::now() + LOOK);
        while !self.is_rung.load(Ordering::Relaxed) && Instant::now() < until {
            thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parking_lot::Mutex;
    use std::sync::Arc;

    /// As if for ever.
    const LONG: Duration = Duration::from_secs(20);

    /// JR-2: what is given while the writer looks out, or falls asleep, is not overlooked.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, whose clock is the machine's")]
    fn a_ring_is_not_overlooked() {
        let shared = Arc::new((Mutex::new(Waiting::new()), Bell::default()));
        let giver = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let (waiting, bell) = &*shared;
                for number in 1..2000_u32 {
                    // The writer has seen the last one, and waits for some time, or no longer.
                    while waiting.lock().taken.records < number as usize - 1 {
                        thread::yield_now();
                    }
                    let until = Instant::now() + LOOK / 100 * (number % 200);
                    while Instant::now() < until {
                        thread::yield_now();
                    }
                    let mut waiting = waiting.lock();
                    waiting.needed.records = number as usize;
                    if number % 2 == 0 {
                        bell.ring();
                        continue;
                    }
                    bell.mark();
                    drop(waiting);
                    bell.wake();
                }
            }
        });
        let (waiting, bell) = &*shared;
        let mut waiting = waiting.lock();
        for number in 1..2000 {
            while waiting.needed.records < number && !giver.is_finished() {
                let until = Instant::now() + LONG;
                let is_rung = match number % 3 {
                    0 => bell.wait_until(&mut waiting, until),
                    _ => bell.expect_until(&mut waiting, until),
                };
                assert!(is_rung, "{number} was overlooked");
            }
            waiting.taken.records = number;
        }
        drop(waiting);
        giver.join().expect("it does not panic");
    }

    /// JR-2: it does not wait for ever for what does not come, nor takes an earlier ring for one.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the writer is a thread, whose clock is the machine's")]
    fn nothing_is_waited_for_too_long() {
        let (waiting, bell) = (Mutex::new(Waiting::new()), Bell::default());
        bell.ring();
        let mut waiting = waiting.lock();
        for later in [Duration::ZERO, LOOK / 2, 2 * LOOK] {
            assert!(!bell.expect_until(&mut waiting, Instant::now() + later));
        }
    }
}
