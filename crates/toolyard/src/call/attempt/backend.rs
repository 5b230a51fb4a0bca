//! Where a call executes.

use super::{Attempt, supervise::Withdrawn};
use crate::{
    call::nested::within,
    tasks::{Blocking, Contained, Panic, TakeUp, after_drop, caught},
};
use futures::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, OnceLock};
use tokio::sync::oneshot;
use toolyard_core::{Grant, Placement, Sandbox, Tool, ToolContext, ToolError, ToolOutput};
use tracing::Instrument as _;

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

/// Executes calls in this process. The engine enforces limits of wall time and output bytes; the host can enforce no
/// others.
pub struct HostBackend {
    blocking: Arc<dyn Blocking>,
}

impl HostBackend {
    /// A host that runs blocking tools on `blocking`.
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
        let (args, cx) = (execution.args.clone(), execution.cx.clone());
        let mut tool = Contained::new(execution.tool.clone()); // dropped on its own, wherever the job is dropped
        let call = execution.attempt.call.clone();
        let (give_result, result) = oneshot::channel();
        let (tell_stopped, stopped) = oneshot::channel();
        let take_up = execution.take_up.get_or_init(TakeUp::default).clone();
        // What the handler logs belongs to its call, on its thread too.
        let span = call.at().span_of();
        let job = async move {
            // All threads may have been busy for longer than the call could wait.
            if cx.is_cancelled() || !take_up.take_up() {
                let _ = tell_stopped.send(false);
                let _ = give_result.send(Err(Panic::new(Box::new(Withdrawn::Stopped))));
                return;
            }
            let done = match caught(|| tool.execute(&args, &cx)) {
                Ok(handler) => within(&call, handler).await,
                Err(panic) => Err(panic),
            };
            let done = after_drop(done, tool.end());
            let ok = matches!(done, Ok(Ok(_)));
            // The stop is sent first, so that whoever has the result need not wait for it. The receivers may be gone.
            let _ = tell_stopped.send(ok);
            let _ = give_result.send(done);
        };
        self.blocking.spawn(Box::pin(job.instrument(span)));
        let result = async {
            match result.await {
                Ok(Ok(done)) => done,
                Ok(Err(panic)) => panic.resume(),
                Err(_) => std::panic::resume_unwind(Box::new(LostThread)),
            }
        };
        Running { result: Box::pin(result), stopped: Stopped::Later(stopped) }
    }
}

/// The panic payload for a handler whose thread was lost without a result.
pub(crate) struct LostThread;

#[inline]
fn check(grant: &Grant) -> Result<(), SandboxError> {
    let Grant { sandbox, limits, .. } = grant;
    let is_bounded = limits.memory.is_some() | limits.processes.is_some() | limits.open_files.is_some();
    if *sandbox == Sandbox::Host && !is_bounded { Ok(()) } else { refuse(grant) }
}

/// What the host cannot do of this grant.
#[cold]
fn refuse(grant: &Grant) -> Result<(), SandboxError> {
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
