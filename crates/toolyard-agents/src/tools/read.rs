//! `Read`: the text of a file of the host.

use super::files::{HostFiles, denied, is_link};
use serde_json::{Value, json};
use std::{io::Read as _, sync::Arc};
use toolyard::{FsMode, Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait};

/// The most bytes of a file that is read.
pub(super) const FILE_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone)]
pub(super) struct Read {
    files: HostFiles,
}

impl Read {
    pub(super) fn new(files: &HostFiles) -> Self {
        Self { files: files.clone() }
    }
}

impl ToolFactory for Read {
    fn spec(&self) -> ToolSpec {
        ToolSpec::read("Read")
            .describe("Reads a text file. Returns its content, and its size in bytes.")
            .input_schema(json!({
                "type": "object",
                "properties": {"path": {"type": "string", "description": "The file, as an absolute path"}},
                "required": ["path"],
                "additionalProperties": false,
            }))
            .requires_fs(FsMode::Read, "path")
            .blocking()
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Read {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let path = args["path"].as_str().unwrap_or_default();
        let agent = (cx.session().clone(), cx.agent().clone());
        let failed =
            |error: std::io::Error| ToolError::execution(format!("'{path}' cannot be read: {error}"));
        let place = self.files.place(&agent, FsMode::Read, path)?;
        let file = place.open().map_err(|error| match is_link(&error) {
            true => denied(FsMode::Read, path),
            false => failed(error),
        })?;
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(ToolError::execution(format!("'{path}' has more than {FILE_BYTES_MAX} bytes")));
        }
        let size = bytes.len();
        let content = String::from_utf8(bytes).map_err(|error| {
            ToolError::execution(format!("'{path}' is no UTF-8 text: {}", error.utf8_error()))
        })?;
        Ok(ToolOutput::json(json!({"content": content, "size": size})))
    }
}
