//! Where code runs: the tasks of calls, the threads of blocking handlers, and the catch around code of an embedder.

mod blocking;
mod on_drop;
mod outside;
mod time;
pub(crate) mod unwind;

#[cfg(test)]
pub(crate) use unwind::logged;
pub(crate) use unwind::{Caught, Contained, Panic, after_drop, caught, log_error, log_unclassified};

pub(crate) use blocking::TakeUp;
pub use blocking::{Blocking, BlockingThreads};
pub(crate) use on_drop::OnDrop;
pub(crate) use outside::{Outside, inside, is_outside, outside};

use futures::future::BoxFuture;
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
};
use tokio::runtime::{EnterGuard, Handle};

/// Where the tasks of calls run. Embedders can supply one, as they can supply the clock, so that a simulation can
/// delay any task at any await. Without one, tasks run on the tokio runtime in which the engine was built.
pub trait Spawner: Send + Sync {
    /// Drives the task to its end, on the engine's runtime. A spawner that stops polling a task must drop it: only
    /// then does its call end.
    fn spawn(&self, task: BoxFuture<'static, ()>);
}

/// Spawns tasks on the engine's runtime, from any thread.
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

    /// Enters the runtime until the guard is dropped, so that timers work even if the caller is outside of tokio.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Drives a future within the engine's runtime, wherever it is polled.
    pub(crate) async fn within<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let _runtime = self.enter();
            future.as_mut().poll(cx)
        })
        .await
    }
}
