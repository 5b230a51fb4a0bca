//! The common parts of the file tools.

use crate::{Workspace, WorkspaceContext};
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;
use std::{
    path::{Component, PathBuf},
    sync::Arc,
};
use toolyard_core::{Resources, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec};

/// A tool that does one operation in a workspace and waits for nothing but the disk. It is its own factory,
/// because it keeps nothing between calls.
#[derive(Clone)]
pub(super) struct FileTool {
    spec: fn() -> ToolSpec,
    run: fn(&Workspace, &Value) -> Result<ToolOutput, ToolError>,
    preview: Option<Preview>,
}

/// Describes the changes that a call would make; an error if its arguments make no sense.
pub(super) type Preview = fn(&Workspace, &Value) -> Result<String, ToolError>;

impl FileTool {
    pub(super) const fn new(
        spec: fn() -> ToolSpec,
        run: fn(&Workspace, &Value) -> Result<ToolOutput, ToolError>,
    ) -> Self {
        Self { spec, run, preview: None }
    }

    /// Adds a preview to the tool.
    pub(super) const fn with_preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self
    }
}

impl ToolFactory for FileTool {
    fn spec(&self) -> ToolSpec {
        (self.spec)().blocking()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }

    fn preview(&self, args: &Value, resources: &Resources) -> Option<String> {
        let (preview, workspace) = (self.preview?, resources.get::<Workspace>()?);
        preview(workspace, args).ok()
    }
}

#[async_trait]
impl Tool for FileTool {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        // The only check of the token: a file operation that has begun is quicker to finish than to undo (SC-5).
        if cx.is_cancelled() {
            return Err(ToolError::cancelled("cancelled before it started").no_side_effect());
        }
        (self.run)(cx.workspace()?, args)
    }
}

/// Deserialises the arguments. If an engine made the call they have passed the schema; if not, this is the check.
pub(crate) fn arguments<'a, T: Deserialize<'a>>(args: &'a Value) -> Result<T, ToolError> {
    T::deserialize(args).map_err(|error| ToolError::invalid_input(error.to_string()))
}

/// The path under which a result names a changed file: relative to the root, without `.`.
pub(super) fn modified_path(workspace: &Workspace, path: &str) -> Result<String, ToolError> {
    let inside = workspace.relative(path)?;
    let parts = inside.components().filter(|part| *part != Component::CurDir);
    Ok(parts.collect::<PathBuf>().to_string_lossy().into_owned())
}
