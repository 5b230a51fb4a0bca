//! Integers that are written with an exponent or a fraction.
//!
//! To JSON Schema, `1e3` and `1000.0` are integers; serde takes neither for one. So where a schema says integer, they
//! are rewritten as 1000 before arguments are refused.

use serde_json::{Number, Value};
use toolyard_core::whole_number;

/// The arguments with such integers rewritten; `None` if they have none.
pub(super) fn rewritten(args: &Value, schema: &Value) -> Option<Value> {
    let mut rewritten = args.clone();
    (rewrite(&mut rewritten, schema) > 0).then_some(rewritten)
}

/// Rewrites the integers in a value. No deeper than the schema. Returns how many there were.
fn rewrite(value: &mut Value, schema: &Value) -> usize {
    match value {
        Value::Number(number) if says_integer(schema) => {
            let integer = integer(number);
            let count = usize::from(integer.is_some());
            *number = integer.unwrap_or_else(|| number.clone());
            count
        }
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items.iter_mut().map(|item| rewrite(item, schema)).sum(),
            None => 0,
        },
        Value::Object(fields) => match schema.get("properties") {
            Some(properties) => fields
                .iter_mut()
                .map(|(name, field)| properties.get(name).map_or(0, |schema| rewrite(field, schema)))
                .sum(),
            None => 0,
        },
        _ => 0,
    }
}

fn says_integer(schema: &Value) -> bool {
    match &schema["type"] {
        Value::Array(types) => types.iter().any(|kind| kind == "integer"),
        kind => kind == "integer",
    }
}

/// The integer that a float stands for.
fn integer(number: &Number) -> Option<Number> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    let magnitude = i64::try_from(whole_number(&float.abs().into())?).ok()?;
    Some(if float < 0.0 { -magnitude } else { magnitude }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// V1: an integer is one however it is written, wherever the schema says integer, and nothing else changes.
    #[test]
    fn integers_are_rewritten_where_the_schema_says_integer() {
        let schema = json!({"type": "object", "properties": {
            "count": {"type": "integer"},
            "maybe": {"type": ["integer", "null"]},
            "share": {"type": "number"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        }});
        let args: Value = serde_json::from_str(
            r#"{"count": 1e3, "maybe": -2.0, "share": 3.0, "list": [{"n": 4.0}, {"n": 5, "x": 6.0}], "y": 7.0}"#,
        )
        .unwrap();
        assert_eq!(
            rewritten(&args, &schema).unwrap().to_string(),
            r#"{"count":1000,"maybe":-2,"share":3.0,"list":[{"n":4},{"n":5,"x":6.0}],"y":7.0}"#
        );
        for args in
            [json!({"count": 7, "maybe": null, "share": 0.5}), json!({"count": 1.5}), json!({"count": 1e16})]
        {
            assert_eq!(rewritten(&args, &schema), None);
        }
    }
}
