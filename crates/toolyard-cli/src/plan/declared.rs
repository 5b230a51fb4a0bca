//! Tools that an episode declares: the plan knows them, but nothing can run them.

use std::sync::Arc;
use toolyard::{Tool, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait, from_fn};
use toolyard_wire::{ClassHint, Episode, EpisodeTool};

/// The tools that an episode declares.
pub(super) fn tools(episode: &Episode) -> Vec<Arc<dyn ToolFactory>> {
    let tools = episode.tools.iter().flatten();
    tools.map(|tool| -> Arc<dyn ToolFactory> { Arc::new(from_fn(spec(tool), || Declared)) }).collect()
}

/// A tool without a hint is assumed to be serial, the strictest class.
fn spec(tool: &EpisodeTool) -> ToolSpec {
    let name = tool.name.as_str();
    let spec = match tool.class_hint.unwrap_or(ClassHint::SerialMut) {
        ClassHint::ReadOnly => ToolSpec::read(name),
        ClassHint::SerialMut => ToolSpec::write(name),
        ClassHint::ConcurrentMut => ToolSpec::write(name).concurrent(),
    };
    let spec = spec.describe(tool.description.as_str());
    match &tool.input_schema {
        Some(schema) => spec.input_schema(schema.clone()),
        None => spec,
    }
}

/// Stands in for a tool that is only declared.
struct Declared;

#[async_trait]
impl Tool for Declared {
    async fn execute(&self, _: &serde_json::Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Err(ToolError::execution("this tool is only declared"))
    }
}
