//! Bounds on what the engine waits for, wherever that is polled.

use super::{Tasks, caught};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};
use tokio::{
    task::{coop::has_budget_remaining, unconstrained},
    time::{Instant, Sleep, sleep, sleep_until},
};

impl Tasks {
    /// Drives a future within the engine's runtime until it is done or so much time has passed; `None` after that.
    ///
    /// When that runtime has been shut down, no time passes there any more, and tokio's timers panic: then the time is
    /// up at once.
    pub(crate) async fn timeout<T>(&self, limit: Duration, future: impl Future<Output = T>) -> Option<T> {
        self.bounded(future, || sleep(limit)).await
    }

    /// The same until an instant.
    pub(crate) async fn timeout_at<T>(&self, until: Instant, future: impl Future<Output = T>) -> Option<T> {
        self.bounded(future, || sleep_until(until)).await
    }

    async fn bounded<T>(&self, future: impl Future<Output = T>, timer: impl Fn() -> Sleep) -> Option<T> {
        let (mut future, mut made) = (pin!(future), None);
        poll_fn(|cx| {
            // Whoever polls may be outside of tokio, but what is polled may use timers.
            let _runtime = self.enter();
            let had_budget = has_budget_remaining();
            if let Poll::Ready(done) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(done));
            }
            let is_up = caught(|| {
                // Made only now, because most futures are done at their first poll and need no timer.
                let timer = made.get_or_insert_with(|| Box::pin(timer()));
                match had_budget {
                    true => pin!(unconstrained(timer.as_mut())).poll(cx), // the future may have used the budget up
                    false => timer.as_mut().poll(cx),
                }
            });
            is_up.unwrap_or(Poll::Ready(())).map(|()| None)
        })
        .await
    }
}
