//! From a tool as its server lists it to a tool of the engine.

use super::{
    class::{self, Class},
    clean,
    config::ServerConfig,
    listing::{BadEntry, Listed},
    pins::Pins,
    remote_tool::RemoteTool,
    shared::Shared,
};
use rmcp::model::Tool;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{fmt::Write, sync::Arc};
use toolyard::{Registry, ToolSpec};

/// A tool that a server lists and the engine does not take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The name it would have; of one without a name, its place in the list, such as `number 3`.
    pub tool: String,
    /// Why not.
    pub why: String,
}

/// What came of a list.
#[derive(Debug, Default, Clone)]
pub(super) struct Definitions {
    /// The tools, by name.
    pub(super) tools: Vec<Arc<RemoteTool>>,
    /// Those that are none.
    pub(super) refused: Vec<Refused>,
}

/// What a server's list comes to. One tool that cannot be is no harm to the others.
pub(super) fn define(listed: Listed, config: &ServerConfig, pins: &Pins, of: &Arc<Shared>) -> Definitions {
    let refused = listed.bad.into_iter().map(|bad| refused(bad, config)).collect();
    let mut definitions = Definitions { tools: Vec::new(), refused };
    // Finds odd names, names that are there twice and schemas that cannot be, as the engine would.
    let scratch = Registry::default();
    for tool in listed.tools {
        let digest = digest(&tool);
        let class = class::of(tool.annotations.as_ref(), config.trusted);
        let spec = spec(&tool, config, class, &digest);
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

/// An entry that is no tool, by the name it would have or by its place.
fn refused(BadEntry { name, place, why }: BadEntry, config: &ServerConfig) -> Refused {
    let tool = name.map_or_else(|| format!("number {place}"), |name| config.tool_name(&name));
    Refused { tool, why }
}

fn spec(tool: &Tool, config: &ServerConfig, class: Class, digest: &str) -> ToolSpec {
    let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
    let mut schema = Value::Object(tool.input_schema.as_ref().clone());
    clean::schema(&mut schema);
    let mut spec = ToolSpec::new(config.tool_name(&tool.name), class.side_effects)
        .describe(clean::text(description, clean::DESCRIPTION_MAX))
        .foreign_schema(schema)
        .backend(config.backend())
        .version(digest);
    spec.idempotent = class.idempotent;
    spec
}

/// The mark of all that a server says of a tool.
fn digest(tool: &Tool) -> String {
    let said = json!({
        "name": tool.name,
        "description": tool.description,
        "title": tool.title,
        "inputSchema": *tool.input_schema,
        "annotations": tool.annotations,
    });
    let mut sorted = said;
    sorted.sort_all_objects();
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(sorted.to_string()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
