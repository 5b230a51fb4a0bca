//! The tasks that jobs run on. They are reused. A job is an attempt; here it is only something that runs and may leave
//! another to run after it.
//!
//! ```text
//!   job     ──► an idle runner?  ── yes ──► a job, and that runner is woken
//!                       └ no ──► a new task
//!   its end ──► the job that it has unblocked (`next.rs`), else one in line, else the runner is idle
//! ```
//!
//! A job has its runner to itself, so a handler that blocks or panics delays no other: there are never more jobs
//! than runners on their way to one. A new task costs an aligned allocation and a place in the runtime's lists; an
//! idle runner costs a lock and a wake-up.

use crate::tasks::{Tasks, caught};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    num::NonZeroU64,
    sync::Arc,
    task::{Context, Poll, Waker},
};

/// How many runners may be idle: more than run at once on most machines. Those of a rare burst are not kept.
const IDLE_MAX: usize = 256;

/// What runs on a runner.
pub(crate) trait Job: Sized + Send + 'static {
    /// What a job leaves at its end, from which the one that it has unblocked is taken.
    type Next;

    /// Runs it to its end.
    fn run(&mut self) -> impl Future<Output = Option<Self::Next>> + Send;

    /// The job that another has unblocked.
    fn unblocked(next: Self::Next) -> Option<Self>;
}

/// The runners of an engine.
pub(crate) struct Runners<J> {
    tasks: Tasks,
    state: Mutex<RunnersState<J>>,
}

struct RunnersState<J> {
    /// Jobs for which runners were woken. The first runner to arrive takes them.
    jobs: VecDeque<J>,
    /// In the order in which they became idle. The last one is woken first, because its memory is still in the
    /// cache.
    idle: Vec<IdleRunner>,
    closed: bool,
    /// The id of the latest idle period.
    last_idle_id: Option<NonZeroU64>,
}

struct IdleRunner {
    /// The id of this idle period, from 1.
    idle_id: NonZeroU64,
    waker: Waker,
}

impl<J: Job> Runners<J> {
    pub(crate) fn new(tasks: Tasks) -> Arc<Self> {
        let state =
            RunnersState { jobs: VecDeque::new(), idle: Vec::new(), closed: false, last_idle_id: None };
        Arc::new(Self { tasks, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, RunnersState<J>> {
        self.state.lock()
    }

    /// Runs a job on an idle runner, or on a new one.
    pub(crate) fn run(self: &Arc<Self>, job: J) {
        let mut state = self.state();
        let Some(IdleRunner { waker, .. }) = state.idle.pop() else {
            drop(state);
            return self.run_on_a_new_one(job);
        };
        state.jobs.push_back(job);
        drop(state);
        // Outside of the lock: another worker may run the runner at once, and would wait for the lock.
        waker.wake();
    }

    fn run_on_a_new_one(self: &Arc<Self>, job: J) {
        let runner = Runner { runners: self.clone(), job: Some(job), idle_id: None };
        self.tasks.spawn(runner.run());
    }

    /// Ends the idle runners; the others end after their current job.
    pub(crate) fn close(&self) {
        let idle = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.idle)
        };
        idle.into_iter().for_each(|idle| idle.waker.wake());
    }
}

impl<J> RunnersState<J> {
    /// Makes a runner idle; `None` if it must end.
    fn set_idle(&mut self, waker: &Waker) -> Option<NonZeroU64> {
        if self.closed || self.idle.len() >= IDLE_MAX {
            return None;
        }
        let idle_id =
            self.last_idle_id.map_or(NonZeroU64::MIN, |last_idle_id| last_idle_id.saturating_add(1));
        self.last_idle_id = Some(idle_id);
        self.idle.push(IdleRunner { idle_id, waker: waker.clone() });
        Some(idle_id)
    }

    /// The position of an idle runner; `None` if it was woken.
    fn idle_position(&self, idle_id: NonZeroU64) -> Option<usize> {
        self.idle.binary_search_by_key(&idle_id, |idle| idle.idle_id).ok()
    }

    /// Ends the idle period of a runner. Returns `None` if it was woken for a job, which another may have taken. What is
    /// returned holds a waker, to be dropped outside of the lock.
    fn leave_idle(&mut self, idle_id: NonZeroU64) -> Option<IdleRunner> {
        self.idle_position(idle_id).map(|at| self.idle.remove(at))
    }
}

/// A task that runs one job after the other.
struct Runner<J: Job> {
    runners: Arc<Runners<J>>,
    job: Option<J>,
    /// The id of its idle period, if it is idle or was woken and has not run since.
    idle_id: Option<NonZeroU64>,
}

impl<J: Job> Runner<J> {
    /// Runs jobs, from the first one to the runner's end.
    #[expect(clippy::manual_async_fn, reason = "an async fn stores its arguments in its future twice")]
    fn run(mut self) -> impl Future<Output = ()> + Send {
        async move {
            while let Some(job) = &mut self.job {
                {
                    // In a block, because it is large: nothing of it is kept across the await below.
                    let next = job.run().await.and_then(J::unblocked);
                    // Dropped now, so as not to keep its batch while the runner is idle. This may drop code of the
                    // embedder, whose panic must not hit the next job.
                    if let Err(panic) = caught(|| self.job = None) {
                        panic.log_drop();
                    }
                    if next.is_some() {
                        self.job = next; // only then, because it is large and would be moved
                    }
                }
                // Without this, jobs that are done at once would keep other tasks off this worker.
                tokio::task::coop::consume_budget().await;
                if self.job.is_none() {
                    // The job is put into `self` there: it is large, and returning it would move it.
                    poll_fn(|cx| self.poll_next_job(cx)).await;
                }
            }
        }
    }

    /// Waits for the next job; ready without one if the runner must end.
    fn poll_next_job(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let _before; // wakers may run any code when they are dropped, so they outlive the lock
        let mut state = self.runners.state();
        if state.jobs.is_empty()
            && let Some(idle_id) = self.idle_id
            && let Some(at) = state.idle_position(idle_id)
        {
            // Polled without having been woken for a job: it keeps its place.
            let waker = &mut state.idle[at].waker;
            if !waker.will_wake(cx.waker()) {
                _before = IdleRunner { idle_id, waker: std::mem::replace(waker, cx.waker().clone()) };
            }
            return Poll::Pending;
        }
        if let Some(idle_id) = self.idle_id.take()
            && let Some(idle) = state.leave_idle(idle_id)
        {
            _before = idle;
        }
        match state.jobs.pop_front() {
            Some(job) => self.job = Some(job),
            None => self.idle_id = state.set_idle(cx.waker()),
        }
        if self.idle_id.is_some() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl<J: Job> Drop for Runner<J> {
    /// If its task is dropped on the way to a job, another runner gets the job.
    fn drop(&mut self) {
        let Some(idle_id) = self.idle_id.take() else { return };
        let (idle, job) = {
            let mut state = self.runners.state();
            let idle = state.leave_idle(idle_id);
            let job = if idle.is_some() { None } else { state.jobs.pop_front() };
            (idle, job)
        };
        drop(idle);
        if let Some(job) = job {
            self.runners.run(job);
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use crate::call::attempt::Attempt;
    use tokio::runtime::Handle;

    /// What tokio adds to a future to make it a task, whose size it rounds up to a multiple of 128.
    const OF_A_TASK: usize = 104;

    /// A running call costs its task, which grows by 128 bytes for one word too many. To see what the compiler keeps
    /// across an await, use `-Zprint-type-sizes`: borrowed values, scrutinees and arguments of an `async fn` are kept
    /// too.
    #[tokio::test]
    async fn a_runner_is_a_task_of_512_bytes() {
        let runners = Runners::new(Tasks::new(Handle::current(), None));
        let task = Runner::<Attempt> { runners, job: None, idle_id: None }.run();
        assert!(size_of_val(&task) + OF_A_TASK <= 512, "{}", size_of_val(&task));
    }
}
