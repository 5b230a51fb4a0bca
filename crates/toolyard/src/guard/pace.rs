//! Drives the line of a tool: whoever waits for a token, or for the end of a pause, is let go by one task a tool, which
//! is there while somebody waits (RT-10, RT-3).

use super::Guard;
use crate::{clock::Clock, tasks::Tasks};
use std::sync::{Arc, atomic::Ordering};
use tokio::time::Instant;

impl Guard {
    /// Lets nobody start before `until`: a server asked for that (RT-3).
    pub(crate) fn pause_until(&self, now: Instant, until: Instant) {
        self.line.pause_until(now, until);
        self.changed.notify_one();
    }

    /// The line has changed: its task looks at it, and is begun if somebody waits and there is none.
    pub(crate) fn line_changed(self: &Arc<Self>, tasks: &Tasks, clock: Clock) {
        if self.pacing.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        } else {
            let pacer = Pacer { guard: self.clone(), done: false };
            tasks.spawn(async move { pacer.pace(clock).await });
        }
    }
}

/// Drives a line until nobody waits. Should its task vanish, nobody else would: all who wait end (SC-3).
struct Pacer {
    guard: Arc<Guard>,
    done: bool,
}

impl Pacer {
    async fn pace(mut self, clock: Clock) {
        let guard = self.guard.clone();
        loop {
            let due = guard.line.due(clock.now());
            due.granted.iter().for_each(|call| call.batch.has_token(call.index));
            due.expired.iter().for_each(|call| call.batch.has_no_token(call.index, due.retry_after));
            let Some(next) = due.next else {
                guard.pacing.store(false, Ordering::Release);
                // One who came in between found a task that was about to end.
                if guard.line.waiting() > 0 && !guard.pacing.swap(true, Ordering::AcqRel) {
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

impl Drop for Pacer {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        // In this order: who comes from now on begins another task.
        self.guard.pacing.store(false, Ordering::Release);
        self.guard.line.clear().iter().for_each(|call| call.batch.has_lost_its_line(call.index));
    }
}
