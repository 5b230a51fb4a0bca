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

use super::{Attempt, Next};
use crate::tasks::Tasks;
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    num::NonZeroU64,
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
    /// Attempts for which runners were woken. Whoever comes first takes them.
    jobs: VecDeque<Attempt>,
    /// In the order in which they came to rest. The one that rested last is woken first: its memory is still near.
    resting: Vec<Resting>,
    closed: bool,
    /// Which rest was the last.
    rests: Option<NonZeroU64>,
}

struct Resting {
    /// Which rest of all it is, from 1.
    rest: NonZeroU64,
    waker: Waker,
}

impl Runners {
    pub(crate) fn new(tasks: Tasks) -> Arc<Self> {
        Arc::new(Self { tasks, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an attempt on a runner at rest, or on a new one.
    pub(crate) fn run(self: &Arc<Self>, attempt: Attempt) {
        let mut state = self.state();
        let Some(Resting { waker, .. }) = state.resting.pop() else {
            drop(state);
            return self.run_on_a_new_one(attempt);
        };
        state.jobs.push_back(attempt);
        drop(state);
        // Outside of the lock: another worker may have the runner at once, and would wait for it.
        waker.wake();
    }

    fn run_on_a_new_one(self: &Arc<Self>, attempt: Attempt) {
        let runner = Runner { runners: self.clone(), attempt: Some(attempt), rest: None };
        self.tasks.spawn(runner.run());
    }

    /// Ends those that rest; those that run end when they have done.
    pub(crate) fn close(&self) {
        let resting = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.resting)
        };
        resting.into_iter().for_each(|resting| resting.waker.wake());
    }
}

impl State {
    /// A runner rests from now on; `None` when it is to end.
    fn rest(&mut self, waker: &Waker) -> Option<NonZeroU64> {
        if self.closed || self.resting.len() >= RESTING_MAX {
            return None;
        }
        let rest = self.rests.map_or(NonZeroU64::MIN, |rests| rests.saturating_add(1));
        self.rests = Some(rest);
        self.resting.push(Resting { rest, waker: waker.clone() });
        Some(rest)
    }

    /// Where a runner rests; `None` for one that was woken.
    fn place_of(&self, rest: NonZeroU64) -> Option<usize> {
        self.resting.binary_search_by_key(&rest, |resting| resting.rest).ok()
    }

    /// A runner rests no more. `false` when it was woken for a job, which it may find taken.
    fn leave(&mut self, rest: NonZeroU64) -> bool {
        self.place_of(rest).map(|at| self.resting.remove(at)).is_some()
    }
}

/// A task that runs one attempt after the other.
struct Runner {
    runners: Arc<Runners>,
    attempt: Option<Attempt>,
    /// Which rest it has, if it rests or has not come back since it was woken.
    rest: Option<NonZeroU64>,
}

impl Runner {
    /// From its first attempt to its end.
    #[expect(
        clippy::manual_async_fn,
        reason = "the arguments of an async fn have their place in its future twice"
    )]
    fn run(mut self) -> impl Future<Output = ()> + Send {
        async move {
            while let Some(attempt) = &mut self.attempt {
                let next = attempt.run().await.and_then(Next::taken);
                // Its batch is not kept while the runner rests. What that is the last to hold may be somebody else's,
                // whose panic is not for the next.
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
    }

    /// Comes for the next attempt, or to the runner's end.
    fn come(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.runners.state();
        if state.jobs.is_empty()
            && let Some(rest) = self.rest
            && let Some(at) = state.place_of(rest)
        {
            // Polled, and not woken for a job: it goes on resting where it does.
            state.resting[at].waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        if let Some(rest) = self.rest.take() {
            state.leave(rest);
        }
        match state.jobs.pop_front() {
            Some(job) => self.attempt = Some(job),
            None => self.rest = state.rest(cx.waker()),
        }
        if self.rest.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Runner {
    /// Should its task vanish on its way to a job, that is for another.
    fn drop(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        let job = {
            let mut state = self.runners.state();
            if state.leave(rest) { None } else { state.jobs.pop_front() }
        };
        if let Some(job) = job {
            self.runners.run(job);
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use tokio::runtime::Handle;

    /// What tokio adds to a future to make a task of it, whose size it rounds up to a multiple of 128.
    const OF_A_TASK: usize = 104;

    /// A running call costs its task, which is 128 bytes larger for a word too many: see what the compiler keeps over a wait
    /// (`-Zprint-type-sizes`), for what is borrowed, matched on or given to an `async fn` is there as well.
    #[tokio::test]
    async fn a_runner_is_a_task_of_512_bytes() {
        let runners = Runners::new(Tasks::new(Handle::current(), None));
        let task = Runner { runners, attempt: None, rest: None }.run();
        assert!(size_of_val(&task) + OF_A_TASK <= 512, "{}", size_of_val(&task));
    }
}
