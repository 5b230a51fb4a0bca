//! `list_dir`: lists a directory.

use super::file_tool::{FileTool, arguments};
use crate::{Listing, Workspace, one_line::OneLine};
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::{FsMode, ToolError, ToolOutput, ToolSpec};

pub(super) const TOOL: FileTool = FileTool::new(spec, run);

fn spec() -> ToolSpec {
    ToolSpec::read("list_dir")
        .describe(
            "Lists a directory of the workspace, sorted, one name per line. Directories end in '/', symbolic links \
             in '@', pipes, devices and sockets in '|'. Control and invisible characters of a \
             name are written as \\uXXXX.",
        )
        .input_schema(json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "default": ".", "description": "The directory, relative to the workspace"},
            },
            "additionalProperties": false,
        }))
        .requires_fs(FsMode::Read, "path")
}

#[derive(Deserialize)]
struct Args<'a> {
    path: Option<&'a str>,
}

fn run(workspace: &Workspace, args: &Value) -> Result<ToolOutput, ToolError> {
    let args: Args<'_> = arguments(args)?;
    let listing = workspace.list(args.path.unwrap_or("."))?;
    let structured = serde_json::to_value(&listing)?;
    Ok(ToolOutput::text(text(&listing)).with_structured(structured))
}

fn text(listing: &Listing) -> String {
    let mut lines: Vec<_> = listing
        .entries
        .iter()
        .map(|entry| format!("{}{}", OneLine(&entry.name), entry.kind.sign()))
        .collect();
    match listing.left_out {
        0 if lines.is_empty() => lines.push("[the directory is empty]".to_owned()),
        0 => {}
        more => lines.push(format!("[… and {more} more]")),
    }
    lines.join("\n")
}
