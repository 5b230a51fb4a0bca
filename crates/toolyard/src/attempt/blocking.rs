//! Where handlers run that block.

use futures::future::BoxFuture;
use tokio::runtime::Handle;

/// An executor for handlers that block, handed to the engine as its clock is, so that a simulation can put
/// a seeded task in place of a thread.
///
/// A job runs to its end whether or not anybody still waits for it.
pub trait Blocking: Send + Sync {
    /// Runs the job, off the workers that drive tasks.
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
