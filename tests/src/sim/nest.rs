//! The one place that names what nested calls need of the engine.

use super::program::ForkPlan;
use toolyard::{Call, Outcome, Session, ToolContext};

/// Whether programs have calls from inside handlers.
pub(crate) const AVAILABLE: bool = true;
/// Whether the engine has forks.
pub(crate) const FORKS: bool = false;
/// Whether the engine has batches that come call by call.
pub(crate) const STREAMS: bool = false;

/// Runs a batch from inside a handler.
pub(super) async fn dispatch(cx: &ToolContext, calls: Vec<Call>) -> Vec<Outcome> {
    cx.dispatch(calls).await
}

/// An agent of a handler's own.
pub(super) fn fork(_: &ToolContext, _: &ForkPlan) -> Option<Session> {
    None
}

/// Runs a batch that comes call by call, so many milliseconds apart.
pub(super) async fn stream(session: &Session, calls: Vec<Call>, _: u64) -> Vec<Outcome> {
    session.dispatch(calls).await
}
