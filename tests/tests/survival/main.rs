//! Calls that survive: the rules of deadlines, retries, keys, breakers, rates, budgets, cancels and drain, in paused
//! time.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod breaker;
mod budget;
mod cancel;
mod crossed;
mod derived_keys;
mod drain;
mod flights;
mod keys;
mod rate;
mod recorder;
mod resume;
mod retry;
mod sandbox;
mod suspend;

use std::{future::Future, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

/// Fails a test that would hang: no test here needs an hour of paused time.
async fn no_hang<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(3600 * SECOND, future).await.expect("timed out")
}
