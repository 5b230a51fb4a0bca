//! Where blocking handlers run.

use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// An executor for blocking handlers. The engine is given one, so that a simulation can replace threads by seeded
/// tasks.
///
/// A job runs to its end whether or not its result is still wanted.
pub trait Blocking: Send + Sync {
    /// Runs the job off the workers that drive tasks.
    fn spawn(&self, job: BoxFuture<'static, ()>);
}

/// The threads that the tokio runtime keeps for blocking work.
#[derive(Debug, Clone)]
pub struct BlockingThreads {
    runtime: Handle,
}

impl BlockingThreads {
    /// The threads of this runtime.
    pub fn new(runtime: Handle) -> Self {
        Self { runtime }
    }
}

impl Blocking for BlockingThreads {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        let runtime = self.runtime.clone();
        self.runtime.spawn_blocking(move || runtime.block_on(job));
    }
}
