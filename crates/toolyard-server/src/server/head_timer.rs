//! When the head of a request has taken too long to arrive (HT-10).
//!
//! ```text
//!   request 1: to 10.0 s ┐
//!   request 2: to 10.2 s ┼─► one timer of the connection: at 10.0 s ─► at 13.1 s ─► …
//!   request 3: to 13.1 s ┘
//! ```
//!
//! Each request has a deadline of its own, which hardly ever comes. All of a connection share a timer, which is set on only
//! when it fires: to set and to clear one for each request takes a lock of the whole runtime twice.

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::time::Instant as TokioInstant;

/// The timer of one connection.
#[derive(Debug, Default)]
pub(super) struct HeadTimer(Shared);

/// `None` until a deadline is first waited for.
type Shared = Arc<Mutex<Option<Pin<Box<tokio::time::Sleep>>>>>;

/// A deadline on the timer of a connection.
struct Head {
    timer: Shared,
    deadline: TokioInstant,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Head { timer: self.0.clone(), deadline: deadline.into() })
    }

    fn now(&self) -> Instant {
        TokioInstant::now().into()
    }
}

impl Sleep for Head {}

impl Future for Head {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let mut timer = self.timer.lock();
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if timer.deadline() > deadline {
            timer.as_mut().reset(deadline);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            // It was for the head of an earlier request.
            timer.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::poll;
    use tokio::time::{advance, sleep};

    /// HT-10: each head has its own deadline, whichever ones came before.
    #[tokio::test(start_paused = true)]
    async fn each_head_has_its_own_deadline() {
        let (timer, begun) = (HeadTimer::default(), TokioInstant::now());
        let within = Duration::from_secs;
        let mut first = timer.sleep(within(10));
        assert!(poll!(&mut first).is_pending());
        drop(first);
        sleep(within(3)).await;
        let mut second = timer.sleep(within(10));
        assert!(poll!(&mut second).is_pending());
        second.await;
        assert_eq!(begun.elapsed().as_secs(), 13, "the second one, and woken at its end");
        // The timer has fired meanwhile without anybody waiting for it.
        let long = timer.sleep(within(100));
        advance(within(50)).await;
        long.await;
        assert_eq!(begun.elapsed().as_secs(), 113);
        // One that is due before the timer is.
        let mut late = timer.sleep(within(100));
        assert!(poll!(&mut late).is_pending());
        timer.sleep(within(1)).await;
        assert_eq!(begun.elapsed().as_secs(), 114);
    }
}
