//! The one place that names what nested calls need of the engine.

use super::program::ForkPlan;
use toolyard::{Call, Outcome, Session, ToolContext};

/// Whether the engine has nested calls, forks and streamed batches; programs have them then.
pub(crate) const AVAILABLE: bool = false;

/// Runs a batch from inside a handler.
pub(super) async fn dispatch(_: &ToolContext, _: Vec<Call>) -> Vec<Outcome> {
    Vec::new()
}

/// An agent of a handler's own.
pub(super) fn fork(_: &ToolContext, _: &ForkPlan) -> Option<Session> {
    None
}

/// Runs a batch that comes call by call, so many milliseconds apart.
pub(super) async fn stream(session: &Session, calls: Vec<Call>, _: u64) -> Vec<Outcome> {
    session.dispatch(calls).await
}
