//! Robustness against misbehaving surroundings: embedder code that panics, threads that are lost, runtimes that shut
//! down, tools and sessions that come and go under load.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod answers;
mod blocking;
mod bounds;
mod busy;
mod destructors;
mod drain;
mod ends;
mod events;
mod load;
mod memory;
mod open_turns;
mod panics;
mod reentry;
mod registry;
mod runners;
mod runtime;
mod tasks;
mod turns;
mod writers;

use futures::future::BoxFuture;
use std::{future::Future, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

/// A `Blocking` executor for paused time: a task that ignores drop and cancel.
struct Tasks;

impl toolyard::Blocking for Tasks {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        tokio::spawn(job);
    }
}

/// Fails a test that would hang: no test here needs an hour, paused or real.
async fn no_hang<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(3600 * SECOND, future).await.expect("timed out")
}

/// Runs a test on a thread of its own and fails if it does not end: a thread that waits for a lock it holds has no
/// time to pause.
fn no_deadlock<T: Send + 'static>(test: impl Future<Output = T> + Send + 'static) -> T {
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let _ = done.send(runtime.unwrap().block_on(no_hang(test)));
    });
    ended.recv_timeout(60 * SECOND).expect("the test panicked, or waits for a lock that it holds")
}

/// Like [`no_hang`], for time that is not paused; far above what any test here takes.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(60 * SECOND, future).await.expect("timed out")
}
