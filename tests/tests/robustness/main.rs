//! What must hold when the surroundings of calls misbehave: code of an embedder that panics, threads that are
//! lost, runtimes that go, tools and sessions that come and go under load.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod answers;
mod blocking;
mod bounds;
mod busy;
mod drain;
mod events;
mod load;
mod panics;
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

/// Turns what would hang into a test that fails: nothing here needs an hour, of paused time or of any.
async fn ends<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(3600 * SECOND, future).await.expect("this ends")
}

/// As [`ends`], for time that is not paused; far above what anything here takes.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(60 * SECOND, future).await.expect("this ends")
}
