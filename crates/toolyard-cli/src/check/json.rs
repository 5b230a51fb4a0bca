//! What `check` finds, as JSON (KT-16): the same words as in its text.

use crate::{
    config::ConfigErrors,
    table::{Table, field_name},
};
use serde_json::{Map, Value, json};

/// A valid configuration: its settings, what the tables say of each tool, warnings and notes.
pub(super) fn of(settings: &[(String, String)], tables: &[Table], lines: &[String]) -> Value {
    let settings = settings.iter().map(|(name, value)| (field_name(name), value.as_str().into()));
    let with = |prefix| lines.iter().filter_map(move |line| line.strip_prefix(prefix)).collect::<Value>();
    json!({
        "valid": true,
        "settings": settings.collect::<Map<_, _>>(),
        "tools": tools(tables),
        "warnings": with("warning: "),
        "notes": with("note: "),
    })
}

/// The tables have the same tools in the same order; where two have a column of the same name, the later one counts.
fn tools(tables: &[Table]) -> Vec<Map<String, Value>> {
    let mut tools: Vec<Map<String, Value>> = Vec::new();
    for table in tables {
        for (place, row) in table.objects().enumerate() {
            match tools.get_mut(place) {
                Some(tool) => tool.extend(row),
                None => tools.push(row),
            }
        }
    }
    tools
}

/// An invalid configuration.
pub(super) fn of_errors(ConfigErrors { file, errors }: &ConfigErrors) -> Value {
    let error =
        |error: &crate::config::ConfigError| json!({"file": file, "line": error.line, "what": error.what});
    json!({"valid": false, "errors": errors.iter().map(error).collect::<Value>()})
}
