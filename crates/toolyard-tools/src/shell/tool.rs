//! One call of the shell.

use super::{arguments::Arguments, command::Command, running::Running, settings::Settings};
use crate::WorkspaceContext;
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use toolyard_core::{PathScope as _, Tool, ToolContext, ToolError, ToolOutput};

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
        Running::new(started, self.settings.output_bytes).finish(&args, cx).await
    }
}
