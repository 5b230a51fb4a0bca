//! The gate: the rules of policies, capabilities, visibility, approvals and hooks, in paused time.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod answers;
mod approvals;
mod capabilities;
mod desk;
mod digests;
mod edits;
mod forms;
mod hooks;
mod layers;
mod policy;
mod reach;
mod receipts;
mod schemas;
mod shared_questions;
mod visibility;

use std::{future::Future, time::Duration};
use toolyard::{ApprovalDesk, ApprovalRequest, Outcome};

const SECOND: Duration = Duration::from_secs(1);

/// Fails a test that would hang: no test here needs two days of paused time.
async fn no_hang<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(48 * 3600 * SECOND, future).await.expect("timed out")
}

/// The message for the model.
fn message(outcome: &Outcome) -> &str {
    &outcome.error().unwrap().message
}

/// The next questions on a desk, sorted by call id.
async fn questions<const N: usize>(desk: &ApprovalDesk) -> [ApprovalRequest; N] {
    let mut taken = Vec::new();
    for _ in 0..N {
        taken.push(no_hang(desk.next()).await.unwrap());
    }
    taken.sort_by_key(|question| question.call_id().to_string());
    taken.try_into().unwrap()
}
