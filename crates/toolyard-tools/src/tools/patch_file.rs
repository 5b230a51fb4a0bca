//! `patch_file`: replaces one stretch of text by another.

use super::{
    changes,
    file_tool::{FileTool, arguments, modified_path},
};
use crate::Workspace;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::{FsMode, ToolError, ToolOutput, ToolSpec};

pub(super) const TOOL: FileTool = FileTool::new(spec, run).with_preview(preview);

fn spec() -> ToolSpec {
    ToolSpec::write("patch_file")
        .describe("Replaces a text that occurs exactly once in a file of the workspace.")
        .input_schema(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file, relative to the workspace"},
                "old": {"type": "string", "minLength": 1, "description": "The exact text to replace, with enough context to occur only once"},
                "new": {"type": "string", "description": "The text to replace it with"},
            },
            "required": ["path", "old", "new"],
            "additionalProperties": false,
        }))
        .requires_fs(FsMode::ReadWrite, "path")
        .approval_ignores("old")
        .approval_ignores("new")
}

#[derive(Deserialize)]
struct Args<'a> {
    path: &'a str,
    old: &'a str,
    new: &'a str,
}

fn run(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let Args { path, old, new } = arguments(args)?;
    let size = workspace.patch(path, old, new)?;
    let path = modified_path(workspace, path)?;
    Ok(ToolOutput::text(format!("patched '{path}', now {size} bytes"))
        .with_structured(json!({"size": size}))
        .with_file_modified(path))
}

/// The diff from the file's current content to its future one, or the reason why the call would fail now.
fn preview(workspace: &Workspace, args: &Value) -> Result<String, ToolError> {
    let Args { path, old, new } = arguments(args)?;
    Ok(match workspace.patched(path, old, new) {
        Ok(patched) => changes::between(&patched.before, &patched.after),
        Err(error) => format!("would fail: {error}"),
    })
}
