//! Where blocking handlers run.

use futures::future::BoxFuture;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};
use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    time::Instant,
};

/// An executor for blocking handlers. The engine is given one, so that a simulation can replace threads by seeded
/// tasks.
///
/// A job runs to its end whether or not its result is still wanted. The engine hands over no more handlers at once
/// than [`Limits`](crate::config::Limits) say, so an executor that can run that many never lets a call wait that has its
/// permits. A call whose job is not taken up within its timeout ends as `queue_timeout`, not started, and its job then
/// does nothing.
pub trait Blocking: Send + Sync {
    /// Runs the job of a handler off the workers that drive tasks.
    fn spawn(&self, job: BoxFuture<'static, ()>);

    /// Runs a job that writes events. It must not wait for handlers, which may be waiting for it.
    fn spawn_writer(&self, job: BoxFuture<'static, ()>) {
        self.spawn(job);
    }

    /// Runs a job that computes what an approval would change, which no permit bounds.
    fn spawn_preview(&self, job: BoxFuture<'static, ()>) {
        self.spawn(job);
    }
}

/// The most threads for writers of events: there are a few writers, and each has at most one job.
const WRITERS_MAX: usize = 64;

/// Threads for blocking handlers, and others for writers of events. They start when they are needed, end when they
/// have had nothing to do for a while, and are shared with nobody. Previews run on the threads that the tokio runtime
/// keeps for blocking work, and while a test pauses tokio's clock everything does, because only those make the clock
/// stand still.
#[derive(Debug, Clone)]
pub struct BlockingThreads {
    runtime: Handle,
    handlers: Arc<Threads>,
    writers: Arc<Threads>,
}

impl BlockingThreads {
    /// Threads whose jobs use the I/O and the timers of this runtime, enough for the default
    /// [`Limits`](crate::config::Limits).
    pub fn new(runtime: Handle) -> Self {
        let limits = crate::config::Limits::default();
        Self::with_at_most(runtime, limits.blocking_threads_max + limits.parked_blocking_max)
    }

    /// The same with at most so many threads for handlers; further handlers wait.
    pub fn with_at_most(runtime: Handle, handlers: usize) -> Self {
        let threads = |name, most| Arc::new(Threads { name, most, pool: OnceLock::new() });
        Self {
            runtime,
            handlers: threads("toolyard-blocking", handlers),
            writers: threads("toolyard-writer", WRITERS_MAX),
        }
    }

    fn run_on(&self, threads: &Threads, job: BoxFuture<'static, ()>) {
        let runtime = self.runtime.clone();
        let run = move || runtime.block_on(job);
        match threads.pool() {
            Some(pool) if !self.is_time_paused() => drop(pool.spawn_blocking(run)),
            _ => drop(self.runtime.spawn_blocking(run)),
        }
    }

    /// Whether a test has paused tokio's clock, which is possible on a runtime of one thread only.
    fn is_time_paused(&self) -> bool {
        /// Far more often than any clock needs to go on.
        const LOOKS: usize = 10_000;
        if self.runtime.runtime_flavor() != RuntimeFlavor::CurrentThread {
            return false;
        }
        let _in_runtime = self.runtime.enter();
        let from = Instant::now();
        (0..LOOKS).all(|_| Instant::now() == from)
    }
}

impl Blocking for BlockingThreads {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        self.run_on(&self.handlers, job);
    }

    fn spawn_writer(&self, job: BoxFuture<'static, ()>) {
        self.run_on(&self.writers, job);
    }

    fn spawn_preview(&self, job: BoxFuture<'static, ()>) {
        let runtime = self.runtime.clone();
        self.runtime.spawn_blocking(move || runtime.block_on(job));
    }
}

/// Threads that start when they are needed: those for the blocking work of a tokio runtime that does nothing else.
struct Threads {
    name: &'static str,
    most: usize,
    /// `None` if the system refuses what it takes.
    pool: OnceLock<Option<Runtime>>,
}

impl Threads {
    fn pool(&self) -> Option<&Runtime> {
        let build = || {
            let mut builder = Builder::new_current_thread();
            builder.thread_name(self.name).max_blocking_threads(self.most.max(1)).build().ok()
        };
        self.pool.get_or_init(build).as_ref()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Waits for no handler: one that was given up may run for ever, and this may be a worker of the runtime.
        if let Some(Some(pool)) = self.pool.take() {
            pool.shutdown_background();
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("name", &self.name).field("most", &self.most).finish_non_exhaustive()
    }
}

/// What has become of a blocking handler that was handed to the executor. Decided once, by whoever is first: the
/// thread that takes it up, or the call that stops waiting for that.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakeUp(Arc<OnceLock<bool>>);

impl TakeUp {
    /// Takes the handler up, unless it was withdrawn.
    pub(crate) fn take_up(&self) -> bool {
        self.0.set(true).is_ok()
    }

    /// Withdraws the handler, unless it was taken up: it does not start any more.
    pub(crate) fn withdraw(&self) -> bool {
        self.0.set(false).is_ok()
    }
}
