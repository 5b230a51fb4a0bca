//! Tool definitions as a request declares them.

mod gemini;

use crate::{ClassHint, Format, NameMap, NameRule};
use serde_json::{Map, Value, json};
use std::{fmt, str::FromStr};
use toolyard_core::{SchemaOrigin, SideEffects, ToolSpec};

/// The ways of declaring tools: the providers' formats, and MCP.
///
/// # Examples
/// ```
/// use toolyard_wire::{Dialect, Format};
/// assert_eq!("mcp".parse(), Ok(Dialect::Mcp));
/// assert_eq!("anthropic".parse(), Ok(Dialect::Provider(Format::Anthropic)));
/// assert_eq!("openai".parse(), Ok(Dialect::Provider(Format::OpenAiChat)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A provider's format, or the neutral one.
    Provider(Format),
    /// The Model Context Protocol.
    Mcp,
}

impl Dialect {
    /// The names that the dialect accepts.
    pub fn name_rule(self) -> NameRule {
        match self {
            Self::Provider(Format::OpenAiChat | Format::OpenAiResponses | Format::Anthropic) => {
                NameRule::Plain
            }
            Self::Provider(Format::Gemini) => NameRule::Dotted,
            Self::Provider(Format::Neutral) | Self::Mcp => NameRule::Any,
        }
    }
}

impl From<Format> for Dialect {
    fn from(format: Format) -> Self {
        Self::Provider(format)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider(format) => format.fmt(f),
            Self::Mcp => f.pad("mcp"),
        }
    }
}

/// The error for a text that names no dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect '{0}', expected openai, openai-responses, anthropic, gemini, mcp or neutral")]
pub struct UnknownDialect(pub String);

impl FromStr for Dialect {
    type Err = UnknownDialect;

    /// # Errors
    /// [`UnknownDialect`] for anything but `mcp`, `openai` (which is Chat) and the formats' names.
    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        match text {
            "mcp" => Ok(Self::Mcp),
            "openai" => Ok(Self::Provider(Format::OpenAiChat)),
            _ => text.parse().map(Self::Provider).map_err(|_| UnknownDialect(text.to_owned())),
        }
    }
}

/// Declares tools in a dialect: as an array, or for Gemini as the one object that holds them all.
///
/// Names that the dialect refuses are replaced; `NameMap::new(dialect.name_rule(), names)` over the same tools
/// gives the map that was used, and [`Message::with_original_names`](crate::Message::with_original_names)
/// undoes it. Schemas are passed on unchanged, except that the type `object` and its `properties`, which
/// providers insist on, are filled in if they are missing, and that one derived from a tool's types is put into the keywords
/// that Gemini knows (KT-1).
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::ToolSpec;
/// use toolyard_wire::{Dialect, Format, definitions};
/// let tools = [ToolSpec::read("fs.read").describe("Reads a file")];
/// assert_eq!(definitions(&tools, Format::Anthropic), json!([{
///     "name": "fs_read",
///     "description": "Reads a file",
///     "input_schema": {"type": "object", "properties": {}},
/// }]));
/// assert_eq!(definitions(&tools, Dialect::Mcp)[0]["annotations"]["readOnlyHint"], true);
/// ```
pub fn definitions(specs: &[ToolSpec], dialect: impl Into<Dialect>) -> Value {
    let dialect = dialect.into();
    let names = NameMap::new(dialect.name_rule(), specs.iter().map(|spec| spec.name.as_str()));
    let tools: Value = specs.iter().map(|spec| tool(spec, names.wire(&spec.name), dialect)).collect();
    match dialect {
        Dialect::Provider(Format::Gemini) => json!({ "functionDeclarations": tools }),
        _ => tools,
    }
}

fn tool(spec: &ToolSpec, name: &str, dialect: Dialect) -> Value {
    let (description, schema) = (&spec.description, schema(spec));
    match dialect {
        Dialect::Provider(Format::OpenAiChat) => {
            let function = json!({"name": name, "description": description, "parameters": schema});
            json!({"type": "function", "function": function})
        }
        Dialect::Provider(Format::OpenAiResponses) => {
            json!({"type": "function", "name": name, "description": description, "parameters": schema})
        }
        Dialect::Provider(Format::Anthropic) => {
            json!({"name": name, "description": description, "input_schema": schema})
        }
        // Not `parameters`: that is a dialect of OpenAPI, and this is plain JSON Schema.
        Dialect::Provider(Format::Gemini) => {
            let schema = match spec.schema_origin {
                SchemaOrigin::Typed => gemini::in_known_keywords(schema),
                SchemaOrigin::Own | SchemaOrigin::Foreign => schema,
            };
            json!({"name": name, "description": description, "parametersJsonSchema": schema})
        }
        Dialect::Provider(Format::Neutral) => {
            let hint = ClassHint::of(spec.class());
            json!({"name": name, "description": description, "input_schema": schema, "class_hint": hint})
        }
        Dialect::Mcp => {
            let annotations = annotations(spec);
            json!({"name": name, "description": description, "inputSchema": schema, "annotations": annotations})
        }
    }
}

fn schema(spec: &ToolSpec) -> Value {
    let mut schema = match spec.schema() {
        Value::Object(schema) => schema,
        // `true`: any object.
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    if schema["type"] == "object" {
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    Value::Object(schema)
}

/// Hints for MCP clients. A tool that is not read-only is declared destructive, because the spec says no more.
fn annotations(spec: &ToolSpec) -> Value {
    let read_only = spec.side_effects.is_read_only();
    json!({
        "readOnlyHint": read_only,
        "destructiveHint": !read_only,
        "idempotentHint": spec.is_repeatable(),
        "openWorldHint": matches!(spec.asked_as(), SideEffects::Network | SideEffects::Execute),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ToolSpec {
        ToolSpec::network("web.search")
            .describe("Searches")
            .input_schema(json!({"type": "object", "properties": {"q": {"type": "string"}}}))
    }

    fn check(dialect: &str, expect: Value) {
        let dialect: Dialect = dialect.parse().unwrap();
        assert_eq!(definitions(&[spec()], dialect), expect, "{dialect}");
    }

    #[test]
    fn each_dialect_has_its_own_shape() {
        let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let function = json!({"name": "web_search", "description": "Searches", "parameters": schema});
        check("openai", json!([{"type": "function", "function": function}]));
        check(
            "openai-responses",
            json!([{"type": "function", "name": "web_search", "description": "Searches", "parameters": schema}]),
        );
        check(
            "anthropic",
            json!([{"name": "web_search", "description": "Searches", "input_schema": schema}]),
        );
        let declaration =
            json!({"name": "web.search", "description": "Searches", "parametersJsonSchema": schema});
        check("gemini", json!({"functionDeclarations": [declaration]}));
        let hints = json!({
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true,
        });
        check(
            "mcp",
            json!([{"name": "web.search", "description": "Searches", "inputSchema": schema, "annotations": hints}]),
        );
        check(
            "neutral",
            json!([{"name": "web.search", "description": "Searches", "input_schema": schema,
                    "class_hint": "serial_mut"}]),
        );
    }

    #[test]
    fn a_schema_without_type_or_properties_gets_them() {
        for declared in [json!({}), json!(true), json!({"type": "object"})] {
            let spec = ToolSpec::pure("f").input_schema(declared);
            let tools = definitions(&[spec], Format::OpenAiResponses);
            assert_eq!(tools[0]["parameters"], json!({"type": "object", "properties": {}}));
        }
    }
}
