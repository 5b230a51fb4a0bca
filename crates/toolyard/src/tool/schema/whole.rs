//! What the arguments are as a whole, which has to be an object.

use serde_json::Value;

/// What they are if not an object of one kind, in the words of whoever wrote the type.
pub(super) fn other_than_an_object(schema: &Value) -> Option<&'static str> {
    let Value::Object(keywords) = schema else { return None }; // anything
    let either = ["oneOf", "anyOf"].iter().any(|keyword| keywords.contains_key(*keyword));
    match keywords.get("type") {
        Some(Value::String(kind)) if kind == "object" && either => Some("a struct that flattens an enum"),
        Some(Value::String(kind)) if kind == "object" => None,
        Some(Value::String(kind)) if kind == "array" => Some("a list"),
        Some(Value::String(_)) if keywords.contains_key("enum") => Some("a plain enum"),
        Some(Value::String(_)) => Some("a single value"),
        Some(_) => Some("an option"),
        None if either => Some("an enum"),
        None => None,
    }
}
