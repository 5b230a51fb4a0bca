//! Where handlers run: shaken on the host, or in a sandbox that fails as the script says (SM-3).

use super::Stage;
use crate::sim::{
    journal::{Fact, HandlerEnd},
    program::End,
};
use std::sync::Arc;
use toolyard::{
    Backend, Execution, Failure, Form, HostBackend, Running, Sandbox, SandboxError, Stopped, Tool, ToolError,
    ToolFactory, ToolOutput, ToolSpec, Work,
};

/// The tool error by which a handler tells its sandbox to fail now.
pub(super) const SANDBOX_GONE: &str = "the sandbox is gone";

/// A tool that runs in a process of its own.
pub(super) struct Portable<F>(pub(super) F);

impl<F: ToolFactory> ToolFactory for Portable<F> {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn create(&self) -> Arc<dyn Tool> {
        self.0.create()
    }

    fn forms(&self) -> &[Form] {
        &[Form::Command]
    }
}

/// The host with shaken handlers, and a sandbox that plays a process.
pub(super) struct ShakenBackend {
    pub(super) host: HostBackend,
    pub(super) stage: Arc<Stage>,
}

impl Backend for ShakenBackend {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        if execution.confinement.sandbox != Sandbox::Host {
            let result = Work::sandboxed(self.in_sandbox(execution));
            return Ok(Running { result, stopped: Stopped::WhenDropped });
        }
        let Running { result, stopped } = self.host.execute(execution)?;
        Ok(Running { result: Work::sandboxed(self.stage.shaker.shake(result)), stopped })
    }
}

impl ShakenBackend {
    async fn in_sandbox(&self, execution: &Execution<'_>) -> Result<ToolOutput, Failure> {
        let (stage, cx) = (&self.stage, &execution.cx);
        let plan = stage.plan(cx.call_id());
        let fails = |started| {
            let why = stage.program.with_secret("no such process");
            Failure::Sandbox { why, started }
        };
        if plan.script.end_of(cx.attempt()) == End::NoSandbox {
            stage.shaker.nudge().await;
            stage.journal.note(Fact::HandlerEnd(plan.node, HandlerEnd::Scripted(End::NoSandbox)));
            return Err(fails(false));
        }
        let done = stage.shaker.shake(execution.tool.execute(execution.args, cx)).await;
        done.map_err(|error: ToolError| match error.message() {
            SANDBOX_GONE => fails(true),
            _ => Failure::Tool(error),
        })
    }
}
