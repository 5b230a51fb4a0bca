//! The built-in tools. They are thin, so that a user's own tool over [`Workspace`](crate::Workspace) is as good.

mod changes;
mod echo;
mod file_tool;
mod list_dir;
mod patch_file;
mod read_file;
mod write_file;

#[cfg(test)]
mod tests;

pub use read_file::{READ_FILE_BYTES_MAX, READ_FILE_LINES_MAX};

use file_tool::FileTool;
#[cfg(unix)]
pub(crate) use file_tool::arguments;
use std::sync::Arc;
use toolyard_core::ToolFactory;

/// The names of all built-in tools.
pub const BUILTIN: &[&str] = &["read_file", "list_dir", "write_file", "patch_file", "echo"];

/// The built-in tool with this name, one of [`BUILTIN`]. File tools use the workspace of the call's context.
///
/// # Examples
/// ```
/// use toolyard_core::ToolFactory;
/// let echo = toolyard_tools::builtin("echo").ok_or("no such tool")?;
/// assert_eq!(echo.spec().name, "echo");
/// assert!(toolyard_tools::builtin("rm").is_none());
/// # Ok::<(), &str>(())
/// ```
pub fn builtin(name: &str) -> Option<Arc<dyn ToolFactory>> {
    if name == "echo" {
        return Some(Arc::new(echo::factory()));
    }
    let mut tools = file_tools().into_iter();
    let tool = tools.find(|tool| tool.spec().name == name)?;
    Some(Arc::new(tool))
}

/// The file tools: `read_file`, `list_dir`, `write_file`, `patch_file`. They use the workspace of the call's
/// context; [`workspace`](crate::workspace) returns them together with one.
pub fn workspace_tools() -> Vec<Arc<dyn ToolFactory>> {
    let share = |tool| -> Arc<dyn ToolFactory> { Arc::new(tool) };
    file_tools().into_iter().map(share).collect()
}

fn file_tools() -> [FileTool; 4] {
    [read_file::TOOL, list_dir::TOOL, write_file::TOOL, patch_file::TOOL]
}
