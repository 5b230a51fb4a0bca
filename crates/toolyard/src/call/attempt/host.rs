//! Execution in this process.

use crate::{
    call::{
        attempt::{
            backend::{Backend, Execution, Running, SandboxError, Stopped, Work},
            supervise::Withdrawn,
        },
        nested::within,
    },
    tasks::{Blocking, Contained, Panic, TakeUp, after_drop, caught},
};
use std::sync::Arc;
use tokio::sync::oneshot;
use toolyard_core::{Confinement, Placement, ResourceLimits, Sandbox};
use tracing::Instrument as _;

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
        check(execution.confinement)?;
        Ok(match execution.placement {
            Placement::Task | Placement::Inline => Running {
                result: Work::Handler(execution.tool.execute(execution.args, &execution.cx)),
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
        Running { result: Work::Handler(Box::pin(result)), stopped: Stopped::Later(stopped) }
    }
}

/// The panic payload for a handler whose thread was lost without a result.
pub(crate) struct LostThread;

#[inline]
fn check(confinement: &Confinement) -> Result<(), SandboxError> {
    let Confinement { sandbox, limits, .. } = confinement;
    let ResourceLimits { wall_time, output_bytes, .. } = *limits;
    let mut kept_here = ResourceLimits::unlimited();
    (kept_here.wall_time, kept_here.output_bytes) = (wall_time, output_bytes);
    if *sandbox == Sandbox::Host && *limits == kept_here { Ok(()) } else { refuse(confinement) }
}

/// What the host cannot do of this.
#[cold]
fn refuse(confinement: &Confinement) -> Result<(), SandboxError> {
    let sandbox = confinement.sandbox;
    if sandbox != Sandbox::Host {
        return Err(SandboxError::Unavailable(sandbox));
    }
    match confinement.limits.kept_by_sandboxes().next() {
        Some(limit) => Err(SandboxError::Unenforceable { sandbox, limit }),
        None => Ok(()),
    }
}
