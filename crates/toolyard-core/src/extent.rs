//! How large data is, and how deep.

use serde_json::Value;

/// The approximate length of the value's JSON text, without writing it.
pub(crate) fn value_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| value_size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields.iter().map(|(key, field)| key.len() + 4 + value_size(field)).sum::<usize>()
        }
    }
}

/// How much memory a value takes, in bytes, more or less. That is often many times the length of its JSON text.
pub(crate) fn value_footprint(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_footprint).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(key, field)| field_footprint(key) + value_footprint(field)).sum()
            }
            _ => 0,
        }
}

/// The name of a field, its hash, and its place in the index.
pub(crate) fn field_footprint(key: &str) -> usize {
    size_of::<String>() + 2 * size_of::<usize>() + key.len()
}

/// Whether a value nests no deeper than so many levels. What is neither an array nor an object nests in nothing.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::nests_at_most;
/// assert!(nests_at_most(&json!([{"a": 1}]), 2) && !nests_at_most(&json!([[]]), 1));
/// ```
pub fn nests_at_most(value: &Value, levels: usize) -> bool {
    let Some(inside) = levels.checked_sub(1) else { return !value.is_array() && !value.is_object() };
    // What is within nothing is not called for.
    let nests = |value: &Value| !(value.is_array() || value.is_object()) || nests_at_most(value, inside);
    match value {
        Value::Array(items) => items.iter().all(nests),
        Value::Object(fields) => fields.values().all(nests),
        _ => true,
    }
}
