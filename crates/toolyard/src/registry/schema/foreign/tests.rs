use crate::registry::Schema;
use serde_json::{Value, json};

fn refused(schema: &Value) -> String {
    Schema::compile_foreign(schema).unwrap_err().to_string()
}

fn takes(schema: &Value, args: &Value) -> bool {
    Schema::compile_foreign(schema).unwrap().validate(args).is_ok()
}

#[test]
fn all_of_json_schema_is_read() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "pet": {"$ref": "#/$defs/pet"},
            "tag": {"type": "string", "pattern": "^[a-z]+$"},
            "pair": {"prefixItems": [{"type": "string"}, {"type": "integer"}]},
        },
        "$defs": {"pet": {"oneOf": [{"const": "cat"}, {"const": "dog"}]}},
        "unevaluatedProperties": false,
    });
    assert!(takes(&schema, &json!({"pet": "cat", "tag": "abc", "pair": ["x", 1]})));
    for wrong in [json!({"pet": "cow"}), json!({"tag": "A"}), json!({"pair": [1]}), json!({"more": 1})] {
        assert!(!takes(&schema, &wrong), "{wrong}");
    }
}

#[test]
fn an_older_draft_is_read_as_what_it_says() {
    let tuple = json!({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]});
    assert!(takes(&tuple, &json!(["x"])) && !takes(&tuple, &json!([1])));
    let unknown = json!({"$schema": "https://example.com/none", "type": "object"});
    assert!(takes(&unknown, &json!({})));
}

/// A reference to the network, to a file or to a name is refused, with its place, before anything resolves it.
#[test]
fn a_reference_outside_is_refused() {
    for to in ["https://example.com/x.json", "http://127.0.0.1:9/", "file:///etc/passwd", "other.json#/a"] {
        let schema = json!({"properties": {"a": {"items": {"$ref": to}}}});
        assert_eq!(
            refused(&schema),
            "schema at '/properties/a/items/$ref' refers outside itself: references must start with '#'"
        );
    }
    assert!(refused(&json!({"anyOf": [{"$dynamicRef": "x"}]})).contains("'/anyOf/0/$dynamicRef'"));
    assert!(refused(&json!({"$defs": {"a": {"$id": "https://example.com/"}}})).contains("'/$defs/a/$id'"));
}

#[test]
fn a_reference_to_nothing_is_refused() {
    assert!(refused(&json!({"properties": {"a": {"$ref": "#/$defs/none"}}})).contains("malformed"));
}

#[test]
fn a_word_that_is_only_data_or_a_name_refers_to_nothing() {
    let schema = json!({
        "properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}},
        "default": {"$ref": "https://example.com"},
        "enum": [{"$ref": "https://example.com"}],
    });
    assert!(Schema::compile_foreign(&schema).is_ok());
}

#[test]
fn a_schema_out_of_bounds_is_refused() {
    let large = json!({"description": "x".repeat(257 << 10)});
    assert!(refused(&large).contains("more than the limit of 262144"));
    let deep = (0..200).fold(json!({}), |inner, _| json!({"not": inner}));
    assert!(refused(&deep).contains("nests deeper"));
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert!(refused(&json!({"const": deep})).contains("nests deeper"));
}

/// Circular references terminate, and references that double at every step cost no more than their number.
#[test]
fn references_without_end_cost_little() {
    for circle in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ] {
        if let Ok(schema) = Schema::compile_foreign(&circle) {
            let _ = schema.validate(&json!({"a": 1}));
        }
    }
    let deep = (0..40).fold(json!({}), |inner, _| json!({"a": inner}));
    let doubled = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    if let Ok(schema) = Schema::compile_foreign(&doubled) {
        let _ = schema.validate(&deep);
    }
}

/// The same if the innermost part does not fit, which sixteen million paths lead to.
#[test]
fn misfits_that_double_at_every_step_are_told_in_bounds() {
    let deep = (0..24).fold(json!({"bad": 1}), |inner, _| json!({"a": inner}));
    let doubled = json!({
        "properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, "bad": {"type": "string"}},
    });
    let misfits = Schema::compile_foreign(&doubled).unwrap().validate(&deep).unwrap_err();
    assert_eq!(misfits.len(), 1);
}

/// A pattern that backtracks without end is given up, and the text does not match.
#[test]
fn a_pattern_without_end_is_given_up() {
    let schema = json!({"type": "string", "pattern": "^(a|a)*(?=b)\\1$"});
    assert!(!takes(&schema, &json!("a".repeat(64))));
}
