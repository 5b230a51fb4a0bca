//! Where a call executes.

use crate::{call::attempt::Attempt, tasks::TakeUp};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;
use toolyard_core::{Confinement, Placement, Sandbox, Tool, ToolContext, ToolError, ToolOutput};

/// One attempt, ready to be executed.
#[non_exhaustive]
pub struct Execution<'a> {
    /// The tool, fresh for this call.
    pub tool: Arc<dyn Tool>,
    /// The arguments.
    pub args: &'a Arc<Value>,
    /// The handler's context.
    pub cx: ToolContext,
    /// In which sandbox, and within which limits: what the policy granted, applied to the forms of the tool (SM-1).
    pub confinement: &'a Confinement,
    /// Where the tool wants to run: in a task, in place, or on a blocking thread.
    pub placement: Placement,
    /// The attempt that this executes.
    pub(crate) attempt: &'a Attempt,
    /// Set once the handler waits for a thread.
    pub(crate) take_up: OnceLock<TakeUp>,
}

impl Execution<'_> {
    /// Withdraws a handler that no thread has taken up yet; `false` if it may have started.
    pub(crate) fn withdraw(&self) -> bool {
        self.take_up.get().is_some_and(TakeUp::withdraw)
    }
}

/// An attempt that is being executed.
pub struct Running<'a> {
    /// Its result. Dropping the future stops a handler that can be stopped that way.
    pub result: BoxFuture<'a, Result<ToolOutput, ToolError>>,
    /// How the engine learns that the handler has stopped.
    pub stopped: Stopped,
}

/// How the engine learns that a handler has stopped.
#[derive(Debug)]
pub enum Stopped {
    /// It has stopped as soon as its future is done or dropped.
    WhenDropped,
    /// It runs where it cannot be dropped. This channel reports its end, with whether it had an output.
    Later(oneshot::Receiver<bool>),
}

impl Stopped {
    /// The channel to wait for once there is a result or the handler was given up; `None` if the handler has stopped.
    pub(crate) fn after(self) -> Option<oneshot::Receiver<bool>> {
        match self {
            Self::WhenDropped => None,
            Self::Later(mut stopped) => match stopped.try_recv() {
                Err(oneshot::error::TryRecvError::Empty) => Some(stopped),
                Ok(_) | Err(oneshot::error::TryRecvError::Closed) => None,
            },
        }
    }
}

/// A sandbox that cannot do what the grant asks. The call ends as `sandbox_error`, not started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no such sandbox here.
    #[error("sandbox '{}' is not available: the call was not run", .0.as_str())]
    Unavailable(Sandbox),
    /// The sandbox cannot enforce a limit of the grant.
    #[error("sandbox '{}' cannot limit {limit}: the call was not run", sandbox.as_str())]
    Unenforceable {
        /// The sandbox.
        sandbox: Sandbox,
        /// The limit.
        limit: &'static str,
    },
}

/// Where calls execute. The engine does all the rest: permits, time, cancellation, panics, results.
pub trait Backend: Send + Sync {
    /// Starts to execute an attempt.
    ///
    /// # Errors
    /// [`SandboxError`] if it cannot be executed as granted; the handler has then not started.
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError>;
}
