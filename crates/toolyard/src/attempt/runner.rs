//! The tasks that attempts run on. They are used again.
//!
//! ```text
//!   attempt ──► a runner at rest? ── yes ──► put into its seat, wake it
//!                       └ no ──► a new task
//!   its end ──► the runner rests ──► the next attempt, or its own end when enough others rest
//! ```
//!
//! An attempt has its runner for itself, so a handler that blocks or panics hurts nobody. A new task costs an
//! aligned allocation and a place in the runtime's lists; a runner at rest costs a lock and a wake-up.

use super::Attempt;
use std::{
    future::{Future, poll_fn},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

/// How many runners may rest. More than run at once on most machines; those of a rare burst are not kept.
const RESTING_MAX: usize = 256;

/// The runners of an engine that rest.
#[derive(Default)]
pub(crate) struct Runners {
    resting: Mutex<Resting>,
}

#[derive(Default)]
struct Resting {
    /// The one that rested last is used first: its memory is still near.
    seats: Vec<Arc<Seat>>,
    closed: bool,
}

/// Where a runner at rest is given its next attempt.
#[derive(Default)]
struct Seat(Mutex<Seated>);

#[derive(Default)]
struct Seated {
    next: Option<Attempt>,
    waker: Option<Waker>,
    /// Its runner takes no more: it has ended, or is to end.
    over: bool,
}

impl Runners {
    fn resting(&self) -> MutexGuard<'_, Resting> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an attempt on a runner at rest, or on a new one.
    pub(super) fn run(mut attempt: Attempt) {
        while let Some(seat) = attempt.engine().runners.pop() {
            match seat.give(attempt) {
                Ok(()) => return,
                Err(back) => attempt = back, // its runtime was shut down under it
            }
        }
        let engine = attempt.batch().session.engine.clone();
        engine.tasks.spawn(runner(engine.runners.clone(), attempt));
    }

    fn pop(&self) -> Option<Arc<Seat>> {
        self.resting().seats.pop()
    }

    /// Whether the runner of this seat may rest; otherwise it is to end.
    fn rest(&self, seat: &Arc<Seat>) -> bool {
        let mut resting = self.resting();
        let may_rest = !resting.closed && resting.seats.len() < RESTING_MAX;
        if may_rest {
            resting.seats.push(seat.clone());
        }
        may_rest
    }

    /// Ends those that rest; those that run end when they have done.
    pub(crate) fn close(&self) {
        let seats = {
            let mut resting = self.resting();
            resting.closed = true;
            std::mem::take(&mut resting.seats)
        };
        seats.iter().for_each(|seat| seat.end());
    }
}

impl Seat {
    fn seated(&self) -> MutexGuard<'_, Seated> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over an attempt; gives it back when the runner has ended.
    fn give(&self, attempt: Attempt) -> Result<(), Attempt> {
        let mut seated = self.seated();
        if seated.over {
            return Err(attempt);
        }
        seated.next = Some(attempt);
        if let Some(waker) = &seated.waker {
            waker.wake_by_ref();
        }
        Ok(())
    }

    /// Takes nothing more. An attempt that was given and not begun ends here: dropping it writes its result.
    fn end(&self) {
        let (given, waker) = {
            let mut seated = self.seated();
            seated.over = true;
            (seated.next.take(), seated.waker.take())
        };
        drop(given);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next attempt; `None` when the runner is to end.
    async fn next(&self) -> Option<Attempt> {
        // Attempts that are done at once would otherwise keep others off this worker.
        tokio::task::coop::consume_budget().await;
        poll_fn(|cx| {
            let mut seated = self.seated();
            match seated.next.take() {
                None if !seated.over => {
                    if !seated.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                        seated.waker = Some(cx.waker().clone());
                    }
                    Poll::Pending
                }
                next => Poll::Ready(next),
            }
        })
        .await
    }
}

/// The seat of a runner that lives. Should its task vanish, nobody is to wait for it.
struct Occupied(Arc<Seat>);

impl Drop for Occupied {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// One runner, from its first attempt to its end.
fn runner(runners: Arc<Runners>, first: Attempt) -> impl Future<Output = ()> + Send {
    let seat = Occupied(Arc::default());
    async move {
        let mut next = Some(first);
        while let Some(attempt) = next {
            attempt.run().await;
            if !runners.rest(&seat.0) {
                return;
            }
            next = seat.0.next().await;
        }
    }
}
