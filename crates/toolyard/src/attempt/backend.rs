//! Where a call executes.

use super::{Attempt, Blocking};
use crate::nesting::within;
use futures::future::BoxFuture;
use serde_json::Value;
use std::{any::Any, panic::AssertUnwindSafe, pin::pin, sync::Arc};
use tokio::sync::oneshot;
use toolyard_core::{Grant, Placement, Sandbox, Tool, ToolContext, ToolError, ToolOutput};

/// One attempt, ready to be executed.
#[non_exhaustive]
pub struct Execution<'a> {
    /// The tool, fresh for this call.
    pub tool: Arc<dyn Tool>,
    /// The arguments.
    pub args: &'a Arc<Value>,
    /// The handler's context.
    pub cx: ToolContext,
    /// What the policy granted.
    pub grant: &'a Grant,
    /// On what the tool wants to run.
    pub placement: Placement,
    /// Whose it is.
    pub(super) attempt: &'a Attempt,
}

/// An attempt that executes.
pub struct Running<'a> {
    /// Its result; dropping the future stops a handler that can be stopped so.
    pub result: BoxFuture<'a, Result<ToolOutput, ToolError>>,
    /// When the handler has stopped.
    pub stopped: Stopped,
}

/// When a handler has stopped.
#[derive(Debug)]
pub enum Stopped {
    /// As soon as its future is done or dropped.
    WhenDropped,
    /// When this channel says so, with whether it had an output: it runs where it cannot be dropped.
    Later(oneshot::Receiver<bool>),
}

impl Stopped {
    /// The channel to wait for, once the result is there or given up; `None` when the handler has stopped.
    pub(super) fn after(self) -> Option<oneshot::Receiver<bool>> {
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
    /// The sandbox cannot keep a limit of the grant.
    #[error("sandbox '{}' cannot limit {limit}: the call was not run", sandbox.as_str())]
    Unenforceable {
        /// The sandbox.
        sandbox: Sandbox,
        /// The limit.
        limit: &'static str,
    },
}

/// Where calls execute. The engine does all the rest: permits, time, cancel, panics, results.
pub trait Backend: Send + Sync {
    /// Begins to execute an attempt.
    ///
    /// # Errors
    /// [`SandboxError`] when it cannot be executed as granted; the handler has not started then.
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError>;
}

/// This process. It keeps limits of wall time and output bytes, which the engine keeps for it, and no others.
pub struct HostBackend {
    blocking: Arc<dyn Blocking>,
}

impl HostBackend {
    /// A host whose blocking tools run there.
    pub fn new(blocking: Arc<dyn Blocking>) -> Self {
        Self { blocking }
    }
}

impl Backend for HostBackend {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        check(execution.grant)?;
        Ok(match execution.placement {
            Placement::Task | Placement::Inline => Running {
                result: execution.tool.execute(execution.args, &execution.cx),
                stopped: Stopped::WhenDropped,
            },
            Placement::Blocking => self.execute_blocking(execution),
        })
    }
}

impl HostBackend {
    fn execute_blocking(&self, execution: &Execution<'_>) -> Running<'static> {
        let (tool, args, cx) = (execution.tool.clone(), execution.args.clone(), execution.cx.clone());
        let call = execution.attempt.call.clone();
        let (give_result, result) = oneshot::channel();
        let (tell_stopped, stopped) = oneshot::channel();
        self.blocking.spawn(Box::pin(async move {
            // The threads may have been busy for longer than the call could wait.
            if cx.is_cancelled() {
                let _ = tell_stopped.send(false);
                let not_taken: Box<dyn Any + Send> = Box::new(NotTaken);
                let _ = give_result.send(Err(not_taken));
                return;
            }
            let handler = AssertUnwindSafe(async { tool.execute(&args, &cx).await });
            let done = within(&call, pin!(futures::FutureExt::catch_unwind(handler))).await;
            let ok = matches!(done, Ok(Ok(_)));
            // Stopped first: who has the result need not wait for that. Nobody may listen any more.
            let _ = tell_stopped.send(ok);
            let _ = give_result.send(done);
        }));
        let result = async {
            match result.await {
                Ok(Ok(done)) => done,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                Err(_) => std::panic::resume_unwind(Box::new(LostThread)),
            }
        };
        Running { result: Box::pin(result), stopped: Stopped::Later(stopped) }
    }
}

/// What unwinds in place of a handler whose thread went without a word.
pub(super) struct LostThread;

/// What unwinds in place of a handler that no thread took up before its call was told to stop.
pub(super) struct NotTaken;

fn check(grant: &Grant) -> Result<(), SandboxError> {
    let sandbox = grant.sandbox;
    if sandbox != Sandbox::Host {
        return Err(SandboxError::Unavailable(sandbox));
    }
    let limits = &grant.limits;
    let unkept = [
        ("memory", limits.memory.is_some()),
        ("processes", limits.processes.is_some()),
        ("open files", limits.open_files.is_some()),
    ];
    match unkept.iter().find(|(_, is_set)| *is_set) {
        Some((limit, _)) => Err(SandboxError::Unenforceable { sandbox, limit }),
        None => Ok(()),
    }
}
