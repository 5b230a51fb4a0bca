//! Integers that are written with an exponent or a fraction.
//!
//! To JSON Schema, `1e3` and `1000.0` are integers; serde takes neither for one. So where a schema says integer, they
//! are rewritten as 1000 before arguments are refused.

use serde_json::{Number, Value};
use std::cell::Cell;
use toolyard_core::whole_number;

/// The arguments with such integers rewritten; `None` if they have none.
pub(super) fn rewritten(args: &Value, schema: &Value) -> Option<Value> {
    let mut rewritten = args.clone();
    let rewriter = Rewriter { root: schema, steps: Cell::new(STEPS_MAX) };
    let count = rewriter.rewrite(&mut rewritten, schema);
    (count > 0 && rewriter.steps.get() > 0).then_some(rewritten)
}

/// How many pairs of a value and a schema are looked at: the alternatives of nested enums multiply. Beyond that nothing is
/// rewritten, and the arguments are refused as they are.
const STEPS_MAX: u32 = 100_000;

/// How many references in a row are followed: more are a circle.
const REFERENCES_MAX: usize = 16;

/// Rewrites the integers of values of a schema, whose references lead into this one.
struct Rewriter<'a> {
    root: &'a Value,
    /// How many are left.
    steps: Cell<u32>,
}

impl<'a> Rewriter<'a> {
    /// Rewrites the integers in a value. No deeper than the value, which is bounded. Returns how many there were.
    fn rewrite(&self, value: &mut Value, schema: &'a Value) -> usize {
        let Some(left) = self.steps.get().checked_sub(1) else { return 0 };
        self.steps.set(left);
        let schema = self.resolved(schema);
        let of_either: usize = ["anyOf", "oneOf", "allOf"]
            .iter()
            .filter_map(|keyword| schema.get(keyword)?.as_array())
            .flatten()
            .map(|schema| self.rewrite(value, schema))
            .sum();
        of_either
            + match value {
                Value::Number(number) if says_integer(schema) => {
                    let integer = integer(number);
                    let count = usize::from(integer.is_some());
                    *number = integer.unwrap_or_else(|| number.clone());
                    count
                }
                Value::Array(items) => {
                    items.iter_mut().enumerate().map(|(at, item)| self.item(at, item, schema)).sum()
                }
                Value::Object(fields) => {
                    fields.iter_mut().map(|(name, field)| self.field(name, field, schema)).sum()
                }
                _ => 0,
            }
    }

    fn item(&self, at: usize, item: &mut Value, schema: &'a Value) -> usize {
        let of_tuple = schema.get("prefixItems").and_then(|schemas| schemas.get(at));
        of_tuple.or_else(|| schema.get("items")).map_or(0, |schema| self.rewrite(item, schema))
    }

    fn field(&self, name: &str, field: &mut Value, schema: &'a Value) -> usize {
        let named = schema.get("properties").and_then(|properties| properties.get(name));
        named.or_else(|| schema.get("additionalProperties")).map_or(0, |schema| self.rewrite(field, schema))
    }

    /// What a reference leads to.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let next = |schema: &'a Value| {
            let reference = schema.get("$ref")?.as_str()?;
            self.root.pointer(reference.strip_prefix('#')?)
        };
        std::iter::successors(Some(schema), |schema| next(schema))
            .take(REFERENCES_MAX)
            .last()
            .unwrap_or(schema)
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

    /// KT-1: alternatives that nest are given up after a bounded number of steps.
    #[test]
    fn alternatives_do_not_multiply_without_bound() {
        let either = json!({"anyOf": [
            {"type": "object", "properties": {"of": {"$ref": "#"}, "n": {"type": "integer"}}},
            {"type": "object", "properties": {"of": {"$ref": "#"}, "n": {"type": "integer"}}},
        ]});
        let nested = |depth| (0..depth).fold(json!({"n": 2.0}), |inner, _| json!({"of": inner}));
        assert_eq!(rewritten(&nested(3), &either).unwrap()["of"]["of"]["of"]["n"], json!(2));
        assert_eq!(rewritten(&nested(60), &either), None);
    }

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
