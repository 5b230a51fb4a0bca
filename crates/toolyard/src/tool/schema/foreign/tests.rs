use crate::tool::schema::{Schema, SchemaError, meter::Exhausted};
use serde_json::{Value, json};
use std::sync::{Arc, atomic::AtomicBool};

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
            "schema at '/properties/a/items/$ref' refers outside itself: a reference must lead to a part of the same \
             document, by '#' or by an $id in it"
        );
    }
    assert!(refused(&json!({"anyOf": [{"$dynamicRef": "x"}]})).contains("'/anyOf/0/$dynamicRef'"));
}

#[test]
fn a_reference_to_nothing_is_refused() {
    assert!(
        refused(&json!({"properties": {"a": {"$ref": "#/$defs/none"}}})).contains("'/properties/a/$ref'")
    );
    // What is data to one reader must not be a schema to another.
    assert!(refused(&json!({"default": {"type": "string"}, "$ref": "#/default"})).contains("'/$ref'"));
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

/// A schema in which each part is made from a reference to the one before, `parts` times, and starts with `first`.
fn chain(parts: usize, first: Value, part: impl Fn(Value) -> Value) -> Value {
    let mut named = serde_json::Map::new();
    named.insert("d0".to_owned(), first);
    for n in 1..=parts {
        named.insert(format!("d{n}"), part(json!({"$ref": format!("#/$defs/d{}", n - 1)})));
    }
    json!({"$ref": format!("#/$defs/d{parts}"), "$defs": named})
}

/// A part that is used twice in each of 39 others would be applied 2^39 times, by whatever keyword.
#[test]
fn a_schema_that_expands_without_bound_is_refused() {
    for double in [
        |part: Value| json!({"allOf": [part, part]}),
        |part: Value| json!({"anyOf": [part, part]}),
        |part: Value| json!({"oneOf": [part, {"not": part}]}),
        |part: Value| json!({"if": part, "then": part, "else": part}),
        |part: Value| json!({"dependentSchemas": {"a": part, "b": part}}),
        |part: Value| json!({"$ref": part["$ref"], "allOf": [part]}),
        |part: Value| json!({"anyOf": [part], "unevaluatedProperties": false}),
    ] {
        let schema = chain(39, json!({"type": "object"}), double);
        assert_eq!(Schema::compile_foreign(&schema).unwrap_err(), SchemaError::Expands, "{schema}");
        assert!(
            takes(&chain(5, json!({"type": "object"}), double), &json!({}))
                || schema.to_string().contains("oneOf")
        );
    }
    let refused = refused(&chain(39, json!({}), |part| json!({"allOf": [part, part]})));
    assert!(refused.contains("more than 10000 parts"), "{refused}");
}

/// The bound is on what applies to one value: 9 999 parts pass.
#[test]
fn a_schema_may_apply_ten_thousand_parts_to_a_value() {
    let wide = |parts: usize| json!({"anyOf": vec![json!({"type": "string"}); parts]});
    assert!(takes(&wide(9_999), &json!("x")));
    assert_eq!(Schema::compile_foreign(&wide(10_000)).unwrap_err(), SchemaError::Expands);
    let fields: Value = (0..5_000).map(|n| (format!("f{n}"), json!({"$ref": "#/$defs/a"}))).collect();
    assert!(takes(&json!({"properties": fields, "$defs": {"a": {"type": "string"}}}), &json!({"f1": "x"})));
}

/// A validator recurses over parts within each other.
#[test]
fn a_long_chain_of_references_is_refused() {
    let through = chain(4_000, json!({"type": "object"}), |part| json!({"allOf": [part]}));
    assert_eq!(Schema::compile_foreign(&through).unwrap_err(), SchemaError::Expands);
    let down = chain(4_000, json!({"type": "object"}), |part| json!({"properties": {"a": part}}));
    let deep = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
    assert!(takes(&down, &deep));
}

/// Parts that double at every level of the data cannot be told from the schema. Their validation ends.
#[test]
fn a_validation_that_doubles_at_every_level_is_given_up() {
    let deep = (0..39).fold(json!({}), |inner, _| json!({"a": inner}));
    let twice = |part: Value| json!({"allOf": [{"properties": {"a": part}}, {"properties": {"a": part}}]});
    let tries = |part: Value| json!({"anyOf": [{"properties": {"a": part}}, {"properties": {"a": part}}]});
    for schema in [chain(39, json!({"type": "object"}), twice), chain(39, json!({"type": "string"}), tries)] {
        let schema = Schema::compile_foreign(&schema).unwrap();
        assert_eq!(schema.validate_briefly(&deep), Err(Exhausted));
        let nobody_waits = Some(Arc::new(AtomicBool::new(true)));
        assert_eq!(schema.validate_at_length(&deep, nobody_waits), Err(Exhausted));
        assert!(schema.validate_briefly(&json!({"a": {"a": 1}})).is_ok());
    }
    let misfits = Schema::compile_foreign(&chain(39, json!({}), twice)).unwrap().validate(&deep).unwrap_err();
    assert!(misfits[0].message.contains("takes too long"), "{misfits:?}");
}

/// The stack is bounded where parts within each other apply at each level of the data.
#[test]
fn a_validation_that_recurses_too_deep_is_given_up() {
    let round =
        chain(60, json!({"properties": {"a": {"$ref": "#/$defs/d60"}}}), |part| json!({"allOf": [part]}));
    let schema = Schema::compile_foreign(&round).unwrap();
    let deep = |levels| (0..levels).fold(json!({}), |inner, _| json!({"a": inner}));
    assert!(schema.validate(&deep(1)).is_ok());
    assert!(schema.validate(&deep(63)).is_err());
}

/// A pattern that can backtrack counts for thousands of steps, so no list of texts makes it last.
#[test]
fn patterns_that_backtrack_are_bounded_together() {
    let schema = Schema::compile_foreign(&json!({"items": {"pattern": "^(a|a)*(?=b)\\1$"}})).unwrap();
    assert!(schema.validate_briefly(&json!(["b", "b"])).is_ok());
    assert_eq!(schema.validate_briefly(&json!(vec!["a".repeat(64); 1_000])), Err(Exhausted));
    let names: Value = (0..1_000).map(|n| (format!("a{n}"), json!(1))).collect();
    let many: Value = (0..1_000).map(|n| (format!("^(?=b){n}"), json!(true))).collect();
    let schema = Schema::compile_foreign(&json!({"patternProperties": many})).unwrap();
    assert_eq!(schema.validate_briefly(&names), Err(Exhausted));
}

/// Comparing with long lists counts as much as the lists are long.
#[test]
fn long_enumerations_are_bounded_together() {
    let words: Vec<Value> = (0..5_000).map(|n| json!({"word": n})).collect();
    let schema = Schema::compile_foreign(&json!({"contains": {"enum": words}, "minContains": 0})).unwrap();
    assert_eq!(schema.validate_briefly(&json!([{"word": 17}])), Ok(Ok(())));
    assert_eq!(schema.validate_briefly(&json!(vec![json!({"word": -1}); 1_000])), Err(Exhausted));
}

/// A list of `items` is a tuple, with or without a `$schema`.
#[test]
fn a_tuple_of_an_older_draft_is_understood() {
    let pair = json!({"items": [{"type": "string"}, {"type": "integer"}], "additionalItems": false});
    for mut schema in [pair.clone(), json!({"$defs": {"pair": pair}, "$ref": "#/$defs/pair"})] {
        for declared in [
            None,
            Some("https://json-schema.org/draft/2020-12/schema"),
            Some("http://json-schema.org/draft-07/schema#"),
        ] {
            if let Some(declared) = declared {
                if declared.contains("draft-07") && schema.get("$ref").is_some() {
                    continue; // `$ref` alone counts there, which leads to the same
                }
                schema["$schema"] = json!(declared);
            }
            assert!(takes(&schema, &json!(["x", 1])), "{schema}");
            assert!(!takes(&schema, &json!([1, "x"])) && !takes(&schema, &json!(["x", 1, 2])), "{schema}");
        }
    }
    let mixed = refused(&json!({"items": [{}], "properties": {"a": {"prefixItems": [{}]}}}));
    assert!(mixed.contains("'/items'") && mixed.contains("write prefixItems for items"), "{mixed}");
}

/// A reference by an `$id` in the same document leads to that part.
#[test]
fn a_reference_by_an_id_within_the_document_is_understood() {
    for (id, part, to) in [
        ("https://example.com/root.json", "name.json", "name.json"),
        ("https://example.com/root.json", "https://other.example/name", "https://other.example/name"),
        ("https://example.com/a/root.json", "/b/name.json", "../b/name.json#"),
        ("urn:example:root", "urn:example:name", "urn:example:name"),
        ("https://example.com/root.json", "x", "https://example.com/root.json#/$defs/name"),
        ("https://example.com/root.json", "x", "root.json#/%24defs/name"),
    ] {
        let schema = json!({
            "$id": id, "properties": {"a": {"$ref": to}}, "$defs": {"name": {"$id": part, "type": "string"}},
        });
        assert!(takes(&schema, &json!({"a": "x"})) && !takes(&schema, &json!({"a": 1})), "{schema}");
    }
    let anchored =
        json!({"properties": {"a": {"$ref": "#it"}}, "$defs": {"name": {"$anchor": "it", "type": "string"}}});
    assert!(!takes(&anchored, &json!({"a": 1})));
    let old = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"$ref": "#it"}}, "definitions": {"name": {"$id": "#it", "type": "string"}},
    });
    assert!(takes(&old, &json!({"a": "x"})) && !takes(&old, &json!({"a": 1})));
    let twice = json!({"$defs": {"a": {"$id": "x.json"}, "b": {"$id": "x.json"}}});
    assert!(refused(&twice).contains("two parts have the $id 'x.json'"));
    let elsewhere = json!({"$id": "https://example.com/a.json", "$ref": "https://example.com/b.json"});
    assert!(refused(&elsewhere).contains("refers outside itself"));
}
