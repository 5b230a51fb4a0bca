//! The tasks that attempts run on. They are used again.
//!
//! ```text
//!   attempt ──► a runner at rest? ── yes ──► a job, and a runner is woken unless some are on their way
//!                       └ no ──► a new task
//!   a runner ──► the next job; are there more? ──► others are woken ──► it runs its own
//!   its end ──► the attempt that its permits let go (`next.rs`), else a job, else the runner rests
//! ```
//!
//! A runner runs one attempt at a time, and there is one for every job, on its way or at rest: what a handler waits for
//! keeps nobody else. Those at rest are not all woken at once, for a runner whose attempt is done takes the next job
//! without a trip through the scheduler; whoever takes a job sees to it that others come for those that are left. A new
//! task costs an aligned allocation and a place in the runtime's lists; a runner at rest costs a lock and a wake-up.

use super::Attempt;
use crate::tasks::Tasks;
use std::{
    collections::VecDeque,
    future::poll_fn,
    iter,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// How many runners may rest. More than run at once on most machines; those of a rare burst are not kept.
const RESTING_MAX: usize = 256;

/// The runners of an engine.
pub(crate) struct Runners {
    tasks: Tasks,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Attempts that wait for a runner. There are never more than runners at rest or on their way: whoever comes first
    /// takes them.
    jobs: VecDeque<Attempt>,
    /// The one that rested last is woken first: its memory is still near. A runner that left has its place empty, so
    /// that those of the others stay theirs.
    resting: Vec<Option<Resting>>,
    /// How many of those places are taken.
    at_rest: usize,
    /// How many were woken and have not come.
    coming: usize,
    /// How many are woken at most before one of them has come. One more than the runtime has workers: a handler that
    /// blocks its worker keeps the one that was woken there last, and there is always another.
    coming_max: usize,
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
    pub(crate) fn new(tasks: Tasks) -> Arc<Self> {
        let state = State { coming_max: tasks.workers() + 1, ..State::default() };
        Arc::new(Self { tasks, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an attempt on a runner at rest, or on a new one.
    pub(crate) fn run(self: &Arc<Self>, attempt: Attempt) {
        let mut state = self.state();
        if state.jobs.len() >= state.at_rest + state.coming {
            drop(state);
            return self.run_on_a_new_one(attempt);
        }
        state.jobs.push_back(attempt);
        let called = state.call_for_jobs(0);
        drop(state);
        // Outside of the lock: another worker may have the runner at once, and would wait for it.
        called.into_iter().for_each(Waker::wake);
    }

    fn run_on_a_new_one(self: &Arc<Self>, attempt: Attempt) {
        let mut runner = Runner { runners: self.clone(), attempt: Some(attempt), place: None };
        self.tasks.spawn(async move { runner.run().await });
    }

    /// Ends those that rest; those that run end when they have done.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let called: Vec<Waker> = iter::from_fn(|| state.call()).collect();
        drop(state);
        called.into_iter().for_each(Waker::wake);
    }
}

impl State {
    /// Calls the runner that rested last.
    fn call(&mut self) -> Option<Waker> {
        while let Some(last) = self.resting.pop() {
            if let Some(Resting { waker, .. }) = last {
                self.at_rest -= 1;
                self.coming += 1;
                return Some(waker);
            }
        }
        None
    }

    /// Calls a runner for the jobs there are, and for so many more, unless enough are on their way or none rests.
    fn call_for_jobs(&mut self, more: usize) -> Option<Waker> {
        let jobs = self.jobs.len();
        let is_wanted = jobs > 0 && self.coming < self.coming_max.min(jobs + more);
        if is_wanted { self.call() } else { None }
    }

    /// A runner rests from now on; `None` when it is to end.
    fn rest(&mut self, waker: &Waker) -> Option<Place> {
        if self.closed || self.resting.len() >= RESTING_MAX {
            return None;
        }
        self.rests += 1;
        self.at_rest += 1;
        let place = Place { at: self.resting.len(), rest: self.rests };
        self.resting.push(Some(Resting { rest: place.rest, waker: waker.clone() }));
        Some(place)
    }

    /// A runner rests no more, or is on its way no more.
    fn leave(&mut self, place: Place) {
        let resting = self.resting.get_mut(place.at);
        match resting.filter(|resting| resting.as_ref().is_some_and(|own| own.rest == place.rest)) {
            Some(own) => {
                *own = None;
                self.at_rest -= 1;
            }
            None => self.coming -= 1,
        }
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
            // Its batch is not kept while the runner rests. What that is the last to hold may be somebody else's, whose
            // panic is not for the next.
            let _ = catch_unwind(AssertUnwindSafe(|| self.attempt = None));
            self.attempt = next;
            // Attempts that are done at once would otherwise keep others off this worker.
            tokio::task::coop::consume_budget().await;
            if self.attempt.is_none() {
                // Put in its place there: an attempt is large, and each hand it goes through would move it.
                poll_fn(|cx| self.come(cx)).await;
            }
        }
    }

    /// Comes for the next attempt, or to the runner's end.
    fn come(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.runners.state();
        if let Some(place) = self.place.take() {
            state.leave(place);
        }
        self.attempt = state.jobs.pop_front();
        if self.attempt.is_none() {
            self.place = state.rest(cx.waker());
            return if self.place.is_some() { Poll::Pending } else { Poll::Ready(()) };
        }
        // One more than there are jobs: the one that is woken last stays with this worker until the handler here has its
        // first wait behind it.
        let called = [state.call_for_jobs(1), state.call_for_jobs(1)];
        drop(state);
        called.into_iter().flatten().for_each(Waker::wake);
        Poll::Ready(())
    }
}

impl Drop for Runner {
    /// Should its task vanish at rest or on its way, a job that counted on it is for another.
    fn drop(&mut self) {
        let Some(place) = self.place.take() else { return };
        let mut state = self.runners.state();
        state.leave(place);
        let left_alone = state.jobs.len() > state.at_rest + state.coming;
        let job = if left_alone { state.jobs.pop_front() } else { None };
        let called = state.call_for_jobs(0);
        drop(state);
        if let Some(job) = job {
            self.runners.run_on_a_new_one(job);
        }
        called.into_iter().for_each(Waker::wake);
    }
}
