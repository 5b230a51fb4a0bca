//! The tasks of an engine's calls.

use futures::future::BoxFuture;
use std::{future::Future, sync::Arc};
use tokio::runtime::{EnterGuard, Handle};

/// Where the tasks of calls run, handed to the engine as its clock is, so that a simulation can delay any of
/// them at any wait. Without one they run on the tokio runtime in which the engine was built.
pub trait Spawner: Send + Sync {
    /// Drives the task to its end, on the engine's runtime. Not polling it any more is as losing its thread:
    /// its call ends when the task is dropped.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// Starts tasks in the engine's runtime, from wherever it is called.
#[derive(Clone)]
pub(crate) struct Tasks {
    runtime: Handle,
    spawner: Option<Arc<dyn Spawner>>,
}

impl Tasks {
    pub(crate) fn new(runtime: Handle, spawner: Option<Arc<dyn Spawner>>) -> Self {
        Self { runtime, spawner }
    }

    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.spawner {
            None => drop(self.runtime.spawn(task)),
            Some(spawner) => spawner.spawn(Box::pin(task)),
        }
    }

    /// Makes timers possible for as long as the guard lives: the caller may be outside of tokio.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }
}
