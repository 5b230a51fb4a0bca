//! What the file tools have in common.

use crate::{Workspace, WorkspaceContext};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use std::{
    path::{Component, PathBuf},
    sync::Arc,
};
use toolyard_core::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec};

/// A tool that does one thing in a workspace and never waits for anything but the disk. It is its own
/// factory: it keeps nothing between calls.
#[derive(Clone)]
pub(super) struct FileTool {
    spec: fn() -> ToolSpec,
    run: fn(&Workspace, &Value) -> Result<ToolOutput, ToolError>,
}

impl FileTool {
    pub(super) const fn new(
        spec: fn() -> ToolSpec,
        run: fn(&Workspace, &Value) -> Result<ToolOutput, ToolError>,
    ) -> Self {
        Self { spec, run }
    }
}

impl ToolFactory for FileTool {
    fn spec(&self) -> ToolSpec {
        (self.spec)().blocking()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for FileTool {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        // The one look at the token: a file operation that has begun is quicker to finish than to undo (SC-5).
        if cx.is_cancelled() {
            return Err(ToolError::cancelled("cancelled before it started").no_side_effect());
        }
        (self.run)(cx.workspace()?, args)
    }
}

/// The arguments as a type. They have passed the schema where an engine made the call; where none did, this
/// is the check.
pub(crate) fn arguments<'a, T: Deserialize<'a>>(args: &'a Value) -> Result<T, ToolError> {
    T::deserialize(args).map_err(|error| ToolError::invalid_input(error.to_string()))
}

/// The path under which a result names a changed file: as it reads from the root, without `.`.
pub(super) fn modified(workspace: &Workspace, path: &str) -> Result<String, ToolError> {
    let inside = workspace.relative(path)?;
    let parts = inside.components().filter(|part| *part != Component::CurDir);
    Ok(parts.collect::<PathBuf>().to_string_lossy().into_owned())
}
