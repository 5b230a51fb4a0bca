//! Services on other machines.

use std::time::SystemTime;
use tokio::time::Instant;
use toolyard::{Execution, Failure, Running, SandboxError, Stopped, Work};
use toolyard_core::{Program, Sandbox, Service, ToolError, ToolOutput, Usage};
use toolyard_egress::{Egress, RemoteService};
use toolyard_program::Given;

/// The sandbox *remote*: calls are requests to services, each at its own origin alone. What runs there is that machine's;
/// here a call has no more than one connection, whose address was judged before it was dialled (SB-10).
///
/// Its requests belong to no trace unless [`traced_by`](Self::traced_by) is set: the engine knows spans, and only whoever
/// exports them knows their traces.
#[derive(Clone, Default)]
pub struct RemoteSandbox {
    egress: Egress,
    traced_by: Option<fn() -> Option<String>>,
}

impl RemoteSandbox {
    /// A sandbox whose requests leave through this.
    pub fn new(egress: Egress) -> Self {
        Self { egress, traced_by: None }
    }

    /// Sets what says the header `traceparent` of a request, by W3C Trace Context: it is asked in the span of the call, and
    /// may answer that there is none. `toolyard_otel::traceparent` does so for spans that `toolyard-otel` exports.
    ///
    /// # Examples
    /// ```
    /// use toolyard_egress::Egress;
    /// use toolyard_sandbox::RemoteSandbox;
    /// fn traceparent() -> Option<String> {
    ///     None // what your exporter says of `tracing::Span::current()`
    /// }
    /// let remote = RemoteSandbox::new(Egress::new()).traced_by(traceparent);
    /// # let _ = remote;
    /// ```
    #[must_use]
    pub fn traced_by(mut self, traceparent: fn() -> Option<String>) -> Self {
        self.traced_by = Some(traceparent);
        self
    }

    pub(crate) fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        if let Some(limit) = execution.confinement.limits.kept_by_sandboxes().next() {
            return Err(SandboxError::Unenforceable { sandbox: Sandbox::Remote, limit });
        }
        let work = async move {
            let Some(Program::Http(service)) = execution.tool.program(execution.args)? else {
                let why = "it has no service that could be called".to_owned();
                return Err(Failure::Sandbox { why, started: false });
            };
            let started_at = Instant::now();
            tokio::select! {
                biased;
                () = execution.cx.cancelled() => {
                    let given_up = ToolError::cancelled("the request was given up").outcome_unknown();
                    Err(given_up.with_usage(Usage::lasting(started_at.elapsed())).into())
                }
                done = self.call(&service, execution) => Ok(Usage::lasting(started_at.elapsed()).told_in(done)?),
            }
        };
        Ok(Running { result: Work::sandboxed(work), stopped: Stopped::WhenDropped })
    }

    async fn call(&self, service: &Service, execution: &Execution<'_>) -> Result<ToolOutput, ToolError> {
        let remote = RemoteService::new(service, &self.egress).map_err(|error| error.tool_error())?;
        let given = Given::new(execution.args, &execution.cx, Instant::now());
        let trace = self.traced_by.and_then(|traceparent| traceparent());
        let answered = remote.call(&given, trace.as_deref()).await.map_err(|failed| failed.tool_error())?;
        answered.result(service.output, SystemTime::now())
    }
}
