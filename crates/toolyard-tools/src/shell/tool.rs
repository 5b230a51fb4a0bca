//! One call of the shell.

use super::{arguments::Arguments, command::Command, running::Attended, settings::Settings};
use crate::WorkspaceContext;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use toolyard_core::{PathScope as _, Program, ProgramIo, Tool, ToolContext, ToolError, ToolOutput};

pub(super) struct ShellTool {
    settings: Arc<Settings>,
}

impl ShellTool {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        Self { settings }
    }
}

#[async_trait]
impl Tool for ShellTool {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let args = Arguments::read(args).map_err(ToolError::no_side_effect)?;
        if cx.is_cancelled() {
            return Err(ToolError::cancelled("cancelled before it started").no_side_effect());
        }
        let workspace = cx.workspace()?;
        let command = Command {
            text: args.command,
            directory: workspace.directory(args.directory())?.into(),
            path: workspace.root().join(workspace.relative(args.directory())?),
            environment: &self.settings.environment,
        };
        let started = command.program().start(&self.settings.containment).map_err(|error| {
            ToolError::execution(format!("cannot start the shell: {error}")).no_side_effect()
        })?;
        Attended::new(started, self.settings.output_bytes).finish(&args.terminal(), cx).await
    }

    /// The same command for a sandbox, which starts it.
    fn program(&self, args: &Value) -> Result<Option<Program>, ToolError> {
        let args = Arguments::read(args).map_err(ToolError::no_side_effect)?;
        let command = super::command::portable(args.command, &self.settings.environment);
        let io = ProgramIo::Terminal(args.terminal());
        let command = command.directory(args.directory()).io(io).output_bytes(self.settings.output_bytes);
        Ok(Some(Program::Command(command)))
    }
}
