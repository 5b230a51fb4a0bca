//! `echo`: returns its arguments, for a first try and for tests of an engine.

use super::file_tool::arguments;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_core::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, from_fn};

pub(super) fn factory() -> impl ToolFactory {
    from_fn(spec(), || Echo)
}

fn spec() -> ToolSpec {
    ToolSpec::pure("echo").describe("Returns its text.").input_schema(json!({
        "type": "object",
        "properties": {"text": {"type": "string", "description": "The text to return"}},
        "required": ["text"],
        "additionalProperties": false,
    }))
}

struct Echo;

#[derive(Deserialize)]
struct Args<'a> {
    text: &'a str,
}

#[async_trait]
impl Tool for Echo {
    async fn execute(&self, args: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { text } = arguments(args)?;
        Ok(ToolOutput::text(text).with_structured(json!({ "text": text })))
    }
}
