//! Turns a tool that a server lists into a tool of the engine.

use super::{
    class::{self, Class},
    listing::{BadEntry, Listed},
    pins::Pins,
    remote_tool::RemoteTool,
    shared::Shared,
};
use crate::client::{config::ServerConfig, text::clean};
use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{fmt::Write, sync::Arc};
use toolyard::{ContentHash, Registry, ToolSpec};

/// A tool that a server lists and the engine refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The name it would have; without a name its place in the list, such as `number 3`.
    pub tool: String,
    /// Why it is refused.
    pub why: String,
}

/// What a server's list amounts to.
#[derive(Debug, Default, Clone)]
pub(crate) struct Definitions {
    /// The tools, in the order of the list.
    pub(crate) tools: Vec<Arc<RemoteTool>>,
    /// The entries that are refused.
    pub(crate) refused: Vec<Refused>,
}

/// Turns a server's list into definitions. A tool that is refused does not affect the others.
pub(crate) fn define(listed: Listed, config: &ServerConfig, pins: &Pins, of: &Arc<Shared>) -> Definitions {
    let refused = listed.bad.into_iter().map(|bad| refused(bad, config)).collect();
    let mut definitions = Definitions { tools: Vec::new(), refused };
    // Finds odd names, duplicate names and invalid schemas, as the engine would.
    let scratch = Registry::default();
    let reached = config.reached();
    for tool in listed.tools {
        let digest = digest(&tool);
        let class = class::of(tool.annotations.as_ref(), config.trusted);
        let version = ContentHash::new("mcp tool 1").bytes(&reached).text(&digest).finish_hex();
        let spec = spec(&tool, config, class, &version);
        let name = clean::text(&spec.name, clean::NAME_MAX);
        let remote = Arc::new(RemoteTool::new(spec, tool.name.into_owned(), class.why, of.clone()));
        let taken = scratch.register(remote.clone()).map_err(|error| error.to_string());
        match taken.and_then(|()| pins.check(&config.name, &remote.remote_name, &digest)) {
            Ok(()) => definitions.tools.push(remote),
            Err(why) => definitions.refused.push(Refused { tool: name, why: clean::text(&why, 500) }),
        }
    }
    definitions
}

/// Refuses an entry that is not a tool, by the name it would have or by its place.
fn refused(BadEntry { name, place, why }: BadEntry, config: &ServerConfig) -> Refused {
    let tool = name.map_or_else(|| format!("number {place}"), |name| config.tool_name(&name));
    Refused { tool, why }
}

/// The tool as the engine knows it. Its version is a hash of how its server is reached and of its definition, so that no
/// approval and no key outlives a change of either (SM-7).
fn spec(tool: &Tool, config: &ServerConfig, class: Class, version: &str) -> ToolSpec {
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let mut schema = Value::Object(tool.input_schema.as_ref().clone());
    clean::schema(&mut schema);
    let mut spec = ToolSpec::new(config.tool_name(&tool.name), class.side_effects)
        .describe(clean::text(description, clean::DESCRIPTION_MAX))
        .foreign_schema(schema)
        .backend(config.backend())
        .version(version);
    (spec.settings.idempotent, spec.asked_as) = (Some(class.idempotent), class.asked_as);
    spec
}

/// The digest of a tool's definition.
fn digest(tool: &Tool) -> String {
    let mut definition = json!({
        "name": tool.name,
        "description": tool.description,
        "title": tool.title,
        "inputSchema": *tool.input_schema,
        "annotations": tool.annotations,
    });
    // Left out if absent, so that pins from before it counted stay valid.
    if let Some(schema) = &tool.output_schema {
        definition["outputSchema"] = Value::Object(schema.as_ref().clone());
    }
    definition.sort_all_objects();
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(definition.to_string()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(tool: Value) -> String {
        digest(&serde_json::from_value(tool).unwrap())
    }

    /// The output schema is part of the definition; a tool without one keeps the digest it always had.
    #[test]
    fn the_digest_covers_the_output_schema() {
        let schema = json!({"type": "object"});
        let plain = json!({"name": "t", "description": "d", "inputSchema": schema});
        let typed = |output: Value| {
            let mut typed = plain.clone();
            typed["outputSchema"] = output;
            digest_of(typed)
        };
        assert_eq!(
            digest_of(plain.clone()),
            "5592982073ceb8c5d4571f8192399f5b0c038cb3a4d4fa6296cf0196ae113cf0"
        );
        let text = typed(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
        assert_ne!(text, digest_of(plain.clone()));
        assert_ne!(text, typed(json!({"type": "object", "properties": {"a": {"type": "number"}}})));
        assert_eq!(text, typed(json!({"properties": {"a": {"type": "string"}}, "type": "object"})));
    }
}
