//! What `check` finds, as JSON (KT-16): the same words as in its text.

use crate::{
    config::{ConfigError, ConfigErrors},
    error::Error,
    table::{Table, field_name},
};
use serde_json::{Map, Value, json};

/// Before the name of a server, in the name of what is said of it.
pub(super) const OF_SERVER: &str = "mcp ";

/// A valid configuration: its settings, what the tables say of each tool, warnings and notes.
pub(super) fn of(settings: &[(String, String)], tables: &[Table], lines: &[String]) -> Value {
    let settings = settings.iter().map(|(name, value)| (setting_name(name), value.as_str().into()));
    let with = |prefix| lines.iter().filter_map(move |line| line.strip_prefix(prefix)).collect::<Value>();
    json!({
        "valid": true,
        "settings": settings.collect::<Map<_, _>>(),
        "tools": tools(tables),
        "warnings": with("warning: "),
        "notes": with("note: "),
    })
}

/// The name of a server stays as it is: others differ from it in nothing but a `-`.
fn setting_name(name: &str) -> String {
    match name.strip_prefix(OF_SERVER) {
        Some(server) => format!("{}{server}", field_name(OF_SERVER)),
        None => field_name(name),
    }
}

/// Each tool, by its name; where two tables have a column of the same name, the later one counts.
fn tools(tables: &[Table]) -> Vec<Value> {
    let mut tools = Map::new();
    for row in tables.iter().flat_map(Table::objects) {
        let name = row.get("tool").and_then(Value::as_str).unwrap_or_default().to_owned();
        match tools.get_mut(&name).and_then(Value::as_object_mut) {
            Some(tool) => tool.extend(row),
            None => drop(tools.insert(name, Value::Object(row))),
        }
    }
    tools.into_iter().map(|(_, tool)| tool).collect()
}

/// What is wrong: each error of a configuration, or what keeps it from being used.
pub(super) fn of_error(error: &Error) -> Value {
    let errors: Vec<Value> = match error {
        Error::Config(ConfigErrors { file, errors }) => {
            let one = |error: &ConfigError| json!({"file": file, "line": error.line, "what": error.what});
            errors.iter().map(one).collect()
        }
        error => vec![json!({"file": null, "line": null, "what": error.to_string()})],
    };
    json!({"valid": false, "errors": errors})
}
