//! `Echo`: gives back a text.

use serde_json::{Value, json};
use toolyard::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait, from_fn};

struct Echo;

#[async_trait]
impl Tool for Echo {
    async fn execute(&self, args: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::json(json!({"text": args["text"]})))
    }
}

pub(super) fn factory() -> impl ToolFactory {
    let spec = ToolSpec::pure("Echo").describe("Gives back the text.").input_schema(json!({
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": false,
    }));
    from_fn(spec, || Echo)
}
