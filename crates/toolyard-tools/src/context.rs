//! Access to the workspace from a handler.

use crate::Workspace;
use toolyard_core::{ToolContext, ToolError};

/// Gives handlers the workspace of their call.
///
/// # Examples
/// ```
/// use serde_json::Value;
/// use toolyard_core::{Tool, ToolContext, ToolError, ToolOutput, async_trait};
/// use toolyard_tools::WorkspaceContext;
///
/// struct CountLines;
///
/// #[async_trait]
/// impl Tool for CountLines {
///     async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
///         let path = args["path"].as_str().unwrap_or("README.md");
///         let lines = cx.workspace()?.read(path)?.lines().count();
///         Ok(format!("{lines} lines").into())
///     }
/// }
/// ```
pub trait WorkspaceContext {
    /// The workspace of the call.
    ///
    /// # Errors
    /// An `execution_error` that says so when the call has none. A tool announces beforehand that it needs one by
    /// declaring [`requires_fs`](toolyard_core::ToolSpec::requires_fs).
    fn workspace(&self) -> Result<&Workspace, ToolError>;
}

impl WorkspaceContext for ToolContext {
    fn workspace(&self) -> Result<&Workspace, ToolError> {
        let missing = || {
            let tool = self.tool();
            ToolError::execution(format!("tool '{tool}' needs a workspace, but this session has none"))
        };
        self.resource::<Workspace>().ok_or_else(missing)
    }
}
