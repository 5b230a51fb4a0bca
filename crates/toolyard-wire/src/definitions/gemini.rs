//! Schemas in the keywords that Gemini knows of JSON Schema.

use serde_json::{Map, Value};

/// The same schema without `const` and `patternProperties`, as far as `enum` and `additionalProperties` can say it. What
/// the model then sends is still checked against the schema as it was.
pub(super) fn in_known_keywords(schema: Value) -> Value {
    match schema {
        Value::Object(mut keywords) => {
            if keywords.contains_key("patternProperties") {
                keywords.remove("additionalProperties"); // which comes to stand for the former
            }
            Value::Object(keywords.into_iter().map(known_keyword).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(in_known_keywords).collect(),
        other => other,
    }
}

fn known_keyword((keyword, value): (String, Value)) -> (String, Value) {
    match (keyword.as_str(), value) {
        ("const", value) => ("enum".to_owned(), Value::Array(vec![value])),
        ("properties" | "$defs", Value::Object(named)) => {
            let named = named.into_iter().map(|(name, schema)| (name, in_known_keywords(schema)));
            (keyword, Value::Object(named.collect()))
        }
        // A map whose keys are numbers, for example: the model is told what its values are.
        ("patternProperties", Value::Object(by_pattern)) if by_pattern.len() == 1 => {
            let schema = by_pattern.into_iter().next().map_or(Value::Bool(true), |(_, schema)| schema);
            ("additionalProperties".to_owned(), in_known_keywords(schema))
        }
        ("enum" | "default" | "examples", value) => (keyword, value),
        (_, value) => (keyword, in_known_keywords(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// KT-1: a derived schema says the same in the keywords that Gemini knows; names and data are not keywords.
    #[test]
    fn unknown_keywords_are_put_into_known_ones() {
        let schema = json!({"type": "object", "properties": {
            "const": {"oneOf": [{"properties": {"by": {"type": "string", "const": "hand"}}}, {"$ref": "#/$defs/Other"}]},
            "sizes": {"type": "object", "additionalProperties": false, "patternProperties": {"^\\d+$": {"const": 1}}},
        }, "$defs": {"Other": {"enum": [{"const": 1}]}}});
        let known = json!({"type": "object", "properties": {
            "const": {"oneOf": [{"properties": {"by": {"type": "string", "enum": ["hand"]}}}, {"$ref": "#/$defs/Other"}]},
            "sizes": {"type": "object", "additionalProperties": {"enum": [1]}},
        }, "$defs": {"Other": {"enum": [{"const": 1}]}}});
        assert_eq!(in_known_keywords(schema), known);
    }
}
