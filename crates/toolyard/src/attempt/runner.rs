//! The tasks that attempts run on. They are used again.
//!
//! ```text
//!   attempt ──► a runner at rest? ── yes ──► a job, and that runner is woken
//!                       └ no ──► a new task
//!   its end ──► the attempt that its permits let go (`next.rs`), else a job, else the runner rests
//! ```
//!
//! An attempt has its runner for itself, so a handler that blocks or panics hurts nobody: there are never more jobs
//! than runners on their way to one. A new task costs an aligned allocation and a place in the runtime's lists; a
//! runner at rest costs a lock and a wake-up.

use super::Attempt;
use std::{
    collections::VecDeque,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

/// How many runners may rest. More than run at once on most machines; those of a rare burst are not kept.
const RESTING_MAX: usize = 256;

/// The runners of an engine.
#[derive(Default)]
pub(crate) struct Runners {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Attempts for which runners were woken. Whoever comes first takes them.
    jobs: VecDeque<Attempt>,
    /// The one that rested last is woken first: its memory is still near. A runner that left has its place empty, so
    /// that those of the others stay theirs.
    resting: Vec<Option<Resting>>,
    closed: bool,
    /// How often a runner came to rest.
    rests: u64,
}

struct Resting {
    /// Which rest of all it is.
    rest: u64,
    waker: Waker,
}

/// Where a runner rests.
#[derive(Clone, Copy)]
struct Place {
    at: usize,
    rest: u64,
}

impl Runners {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an attempt on a runner at rest, or on a new one.
    pub(crate) fn run(self: &Arc<Self>, attempt: Attempt) {
        let mut state = self.state();
        let Some(waker) = state.next_at_rest() else {
            drop(state);
            let engine = attempt.batch().session.engine.clone();
            let mut runner = Runner { runners: self.clone(), attempt: Some(attempt), place: None };
            engine.tasks.spawn(async move { runner.run().await });
            return;
        };
        state.jobs.push_back(attempt);
        drop(state);
        // Outside of the lock: another worker may have the runner at once, and would wait for it.
        waker.wake();
    }

    /// Ends those that rest; those that run end when they have done.
    pub(crate) fn close(&self) {
        let resting = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.resting)
        };
        resting.into_iter().flatten().for_each(|resting| resting.waker.wake());
    }
}

impl State {
    fn next_at_rest(&mut self) -> Option<Waker> {
        while let Some(last) = self.resting.pop() {
            if let Some(Resting { waker, .. }) = last {
                return Some(waker);
            }
        }
        None
    }

    /// A runner rests from now on; `None` when it is to end.
    fn rest(&mut self, waker: &Waker) -> Option<Place> {
        if self.closed || self.resting.len() >= RESTING_MAX {
            return None;
        }
        self.rests += 1;
        let place = Place { at: self.resting.len(), rest: self.rests };
        self.resting.push(Some(Resting { rest: place.rest, waker: waker.clone() }));
        Some(place)
    }

    /// A runner rests no more. `false` when it was woken for a job, which it may find taken.
    fn leave(&mut self, place: Place) -> bool {
        let resting = self.resting.get_mut(place.at);
        let own = resting.filter(|resting| resting.as_ref().is_some_and(|own| own.rest == place.rest));
        own.is_some_and(|own| own.take().is_some())
    }
}

/// A task that runs one attempt after the other.
struct Runner {
    runners: Arc<Runners>,
    attempt: Option<Attempt>,
    /// Where it rests, if it does or has not come back since it was woken.
    place: Option<Place>,
}

impl Runner {
    /// From its first attempt to its end.
    async fn run(&mut self) {
        while let Some(attempt) = &mut self.attempt {
            let next = attempt.run().await;
            let ended = std::mem::replace(&mut self.attempt, next);
            // Its batch is not kept while the runner rests. What that is the last to hold may be somebody else's, whose
            // panic is not for the next.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(ended)));
            // Attempts that are done at once would otherwise keep others off this worker.
            tokio::task::coop::consume_budget().await;
            if self.attempt.is_none() {
                self.attempt = self.next().await;
            }
        }
    }

    /// The next attempt; `None` when the runner is to end.
    async fn next(&mut self) -> Option<Attempt> {
        poll_fn(|cx| {
            let mut state = self.runners.state();
            if let Some(place) = self.place.take() {
                state.leave(place);
            }
            if let Some(job) = state.jobs.pop_front() {
                return Poll::Ready(Some(job));
            }
            self.place = state.rest(cx.waker());
            if self.place.is_some() { Poll::Pending } else { Poll::Ready(None) }
        })
        .await
    }
}

impl Drop for Runner {
    /// Should its task vanish on its way to a job, that is for another.
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let job = {
            let mut state = self.runners.state();
            if state.leave(place) { None } else { state.jobs.pop_front() }
        };
        if let Some(job) = job {
            self.runners.run(job);
        }
    }
}
