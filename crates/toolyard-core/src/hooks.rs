//! An embedder's own steps on the way of a call.

use crate::{Call, Caller, Outcome};
use async_trait::async_trait;

/// A hook's no. The call ends as `aborted`; its siblings go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abort {
    /// Why, in a sentence for the model.
    pub message: String,
}

impl Abort {
    /// Because of this.
    pub fn because(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Steps of an embedder's own before and after a call (V1). Each has 5 s.
///
/// A hook that panics or takes longer is that call's error where it could have refused (`aborted`), and
/// a line in the log otherwise.
///
/// # Cancel safety
/// The future of a hook is dropped when its time is over, and that of [`on_tool_call`](Self::on_tool_call) also
/// when the caller drops its dispatch.
#[async_trait]
pub trait Hooks: Send + Sync {
    /// Before anything is looked at: the raw call. May refuse it.
    ///
    /// # Errors
    /// [`Abort`] ends the call as `aborted`.
    async fn on_tool_call(&self, call: &Call, caller: &Caller<'_>) -> Result<(), Abort> {
        let _ = (call, caller);
        Ok(())
    }

    /// The call is about to wait for its permits; no permit is held.
    async fn on_tool_start(&self, call: &Call, caller: &Caller<'_>) {
        let _ = (call, caller);
    }

    /// The call has ended this way.
    async fn on_tool_end(&self, outcome: &Outcome, caller: &Caller<'_>) {
        let _ = (outcome, caller);
    }
}

/// No step at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
