//! `write_file`: writes a whole file.

use super::{
    changes,
    file_tool::{FileTool, arguments, modified_path},
};
use crate::{Workspace, WorkspaceError};
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::{FsMode, ToolError, ToolOutput, ToolSpec};

pub(super) const TOOL: FileTool = FileTool::new(spec, run).with_preview(preview);

fn spec() -> ToolSpec {
    ToolSpec::write("write_file")
        .describe(
            "Writes a text file of the workspace, new or replacing an old one. Missing directories are created.",
        )
        .input_schema(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace"},
                "content": {"type": "string", "description": "The whole text of the file"},
            },
            "required": ["path", "content"],
            "additionalProperties": false,
        }))
        .requires_fs(FsMode::ReadWrite, "path")
        .approval_ignores("content")
        .idempotent()
}

#[derive(Deserialize)]
struct Args<'a> {
    path: &'a str,
    content: &'a str,
}

fn run(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let Args { path, content } = arguments(args)?;
    workspace.write(path, content)?;
    let size = content.len();
    let path = modified_path(workspace, path)?;
    Ok(ToolOutput::text(format!("wrote {size} bytes to '{path}'"))
        .with_structured(json!({"size": size}))
        .with_file_modified(path))
}

/// The diff from the file's current content to its future one.
fn preview(workspace: &Workspace, args: &Value) -> Result<String, ToolError> {
    let Args { path, content } = arguments(args)?;
    Ok(match workspace.read(path) {
        Ok(now) => changes::between(&now, content),
        Err(WorkspaceError::NotFound { .. }) => changes::new_file(content),
        Err(WorkspaceError::NotUtf8 { .. }) => "replaces a file that is not text".to_owned(),
        Err(WorkspaceError::TooLarge { size, .. }) => {
            format!("replaces a file of {size} bytes, too large to show")
        }
        Err(error) => format!("no preview: {error}"),
    })
}
