//! Hooks: an embedder's own steps before and after a call.

use crate::{Call, Caller, Outcome};
use async_trait::async_trait;

/// A hook's refusal. The call ends as `aborted`; its siblings are not affected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// The reason, in a sentence for the model.
    pub message: String,
}

impl Abort {
    /// A refusal for this reason.
    pub fn because(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// An embedder's own steps before and after a call (V1). Each has 5 s.
///
/// They run on the calls' path: one that waits holds up its own call, but one that blocks its thread also those behind
/// it.
///
/// If [`on_tool_call`](Self::on_tool_call) panics or takes longer, its call ends as `aborted`. If another hook does,
/// that is logged.
///
/// # Cancel safety
/// A hook's future is dropped when its time is over. That of [`on_tool_call`](Self::on_tool_call) is also dropped when
/// the caller drops its dispatch.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Runs before any check, with the raw call, and may refuse it.
    ///
    /// # Errors
    /// [`Abort`] ends the call as `aborted`.
    async fn on_tool_call(&self, call: &Call, caller: &Caller<'_>) -> Result<(), Abort> {
        let _ = (call, caller);
        Ok(())
    }

    /// Runs when the call is about to wait for its permits; it holds none.
    async fn on_tool_start(&self, call: &Call, caller: &Caller<'_>) {
        let _ = (call, caller);
    }

    /// Runs when the call has ended.
    async fn on_tool_end(&self, outcome: &Outcome, caller: &Caller<'_>) {
        let _ = (outcome, caller);
    }
}

/// Hooks that do nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
