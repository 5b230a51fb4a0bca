//! Drives the rate queue of a tool: one task per tool grants tokens to calls that wait for one or for the end of a
//! pause. The task exists only while calls wait (RT-10, RT-3).

use super::Guard;
use crate::{clock::Clock, tasks::Tasks};
use std::sync::{Arc, atomic::Ordering};
use tokio::time::Instant;

impl Guard {
    /// Starts no attempt before `until`, at a server's request (RT-3).
    pub(crate) fn pause_until(&self, now: Instant, until: Instant) {
        self.queue.pause_until(now, until);
        self.changed.notify_one();
    }

    /// Makes the task look at the changed queue, and starts it if there is none.
    pub(crate) fn line_changed(self: &Arc<Self>, tasks: &Tasks, clock: Clock) {
        if self.is_driven.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        } else {
            let driver = RateDriver { guard: self.clone(), done: false };
            tasks.spawn(async move { driver.drive(clock).await });
        }
    }
}

/// Drives a queue until no call waits. If its task is dropped, it ends all waiting calls, because nothing else would
/// (SC-3).
struct RateDriver {
    guard: Arc<Guard>,
    done: bool,
}

impl RateDriver {
    async fn drive(mut self, clock: Clock) {
        let guard = self.guard.clone();
        loop {
            let due = guard.queue.due(clock.now());
            due.granted.into_iter().for_each(|call| call.waiter.token_granted(call.index));
            due.expired.iter().for_each(|call| call.waiter.token_refused(call.index, due.retry_after));
            let Some(next) = due.next else {
                guard.is_driven.store(false, Ordering::Release);
                // A call that joined just now found the task still running and started no other.
                if guard.queue.waiting() > 0 && !guard.is_driven.swap(true, Ordering::AcqRel) {
                    continue;
                }
                self.done = true;
                return;
            };
            tokio::select! {
                biased;
                () = guard.changed.notified() => {}
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }
}

impl Drop for RateDriver {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // In this order, so that a call that joins from now on starts another task.
        self.guard.is_driven.store(false, Ordering::Release);
        self.guard.queue.clear().iter().for_each(|call| call.waiter.loses_queue(call.index));
    }
}
