//! Where a call executes.
//!
//! ```text
//!   Backend::execute ─┬─ SandboxError   it cannot do what the grant asks: nothing has started, no breaker counts it
//!                     └─ Running ─► Work ─┬─ output
//!                                         ├─ ToolError         the tool failed
//!                                         └─ Failure::Sandbox  the sandbox failed, before the tool started or later
//! ```

use crate::{call::attempt::Attempt, tasks::TakeUp};
use futures::future::BoxFuture;
use serde_json::Value;
use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
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
    pub result: Work<'a>,
    /// How the engine learns that the handler has stopped.
    pub stopped: Stopped,
}

/// The work of an attempt: a future with the tool's output.
///
/// It has two forms so that a handler of this process, the usual case, is polled as it is, in the one box it comes in.
pub enum Work<'a> {
    /// A handler in this process. It fails with the tool's errors and nothing else.
    Handler(BoxFuture<'a, Result<ToolOutput, ToolError>>),
    /// Something that runs in a sandbox, which may fail itself.
    Sandboxed(BoxFuture<'a, Result<ToolOutput, Failure>>),
}

impl<'a> Work<'a> {
    /// What runs in a sandbox.
    pub fn sandboxed(work: impl Future<Output = Result<ToolOutput, Failure>> + Send + 'a) -> Self {
        Self::Sandboxed(Box::pin(work))
    }
}

impl Future for Work<'_> {
    type Output = Result<ToolOutput, Failure>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Handler(handler) => handler.as_mut().poll(cx).map_err(Failure::Tool),
            Self::Sandboxed(work) => work.as_mut().poll(cx),
        }
    }
}

/// Work as the engine polls it. A failure is boxed at once, because the end of an attempt is moved several times.
pub(crate) struct InHand<'a>(pub(crate) Work<'a>);

impl Future for InHand<'_> {
    type Output = Result<ToolOutput, Box<Failure>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Work::Handler(handler) => {
                handler.as_mut().poll(cx).map_err(|error| Box::new(Failure::Tool(error)))
            }
            Work::Sandboxed(work) => work.as_mut().poll(cx).map_err(Box::new),
        }
    }
}

/// Why an attempt in a sandbox has no output (SM-3).
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// The tool failed: its sandbox did its part.
    Tool(ToolError),
    /// The sandbox failed: the call ends as `sandbox_error`, and the breaker of the sandbox counts it (CB-9).
    Sandbox {
        /// What happened, for the message.
        why: String,
        /// Whether the tool may have started. If not, the call has not started either: it has made no attempt, and may
        /// be sent again. Otherwise its effect is unknown, unless the tool only reads.
        started: bool,
    },
}

impl From<ToolError> for Failure {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
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
    /// The sandbox has no network, and the call may reach hosts, which is more than it would get.
    #[error("sandbox '{}' has no way to the hosts that the call may reach: the call was not run", .0.as_str())]
    NoHosts(Sandbox),
    /// The sandbox cannot be given something that the call may use (SM-2).
    #[error("sandbox '{}' cannot be given '{}', {why}: the call was not run", sandbox.as_str(), path.display())]
    Unreachable {
        /// The sandbox.
        sandbox: Sandbox,
        /// The path, relative to the workspace's root.
        path: PathBuf,
        /// Why not.
        why: String,
    },
}

/// Where calls execute. The engine does all the rest: permits, time, cancellation, panics, results.
///
/// # Examples
/// A sandbox that breaks once the tool is done:
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # use std::sync::Arc;
/// # use toolyard::{
/// #     Backend, BreakerOf, Call, Engine, ErrorKind, Execution, Failure, Form, Running, Sandbox, SandboxError, Stopped,
/// #     Tool, ToolContext, ToolFactory, ToolSpec, Work, tool_fn,
/// # };
/// # struct Program<F>(F);
/// # impl<F: ToolFactory> ToolFactory for Program<F> {
/// #     fn spec(&self) -> ToolSpec { self.0.spec() }
/// #     fn create(&self) -> Arc<dyn Tool> { self.0.create() }
/// #     fn forms(&self) -> &[Form] { &[Form::Command] }
/// # }
/// struct Fragile;
///
/// impl Backend for Fragile {
///     fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
///         let work = Work::sandboxed(async move {
///             execution.tool.execute(execution.args, &execution.cx).await?; // the tool's error is the tool's
///             Err(Failure::Sandbox { why: "the pipe is closed".to_owned(), started: true })
///         });
///         Ok(Running { result: work, stopped: Stopped::WhenDropped })
///     }
/// }
///
/// let ping = Program(tool_fn(ToolSpec::read("ping"), |(): (), _: ToolContext| async { Ok("pong") }));
/// let engine = Engine::builder().tool(ping).backend(Arc::new(Fragile)).build().await.unwrap();
/// let outcome = engine.session("demo").call(Call::new("call_1", "ping", "{}")).await;
/// let error = outcome.error().unwrap();
/// assert_eq!(error.kind, ErrorKind::SandboxError);
/// assert_eq!(error.message, "sandbox 'process' failed while the call ran: the pipe is closed");
/// let process = BreakerOf::sandbox(Sandbox::Process);
/// let breaker = engine.breakers().into_iter().find(|breaker| breaker.of == process).unwrap();
/// assert_eq!(breaker.failures, 1);
/// # }
/// ```
pub trait Backend: Send + Sync {
    /// Starts to execute an attempt.
    ///
    /// # Errors
    /// [`SandboxError`] if it cannot be executed as granted; the handler has then not started.
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError>;
}
