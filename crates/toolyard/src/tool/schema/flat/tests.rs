use super::Flat;
use crate::tool::schema::{Check, Schema};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn flat(schema: &Value) -> Option<Flat> {
    assert!(Schema::compile(schema).is_ok(), "{schema}");
    Flat::of(schema)
}

/// V1: arguments that fit are seen to fit without the validator.
#[test]
fn the_usual_arguments_surely_fit() {
    let schema = json!({
        "type": "object",
        "title": "Weather",
        "properties": {
            "city": {"type": "string", "description": "where", "format": "city"},
            "days": {"type": "integer"},
            "factor": {"type": "number"},
            "metric": {"type": "boolean"},
            "nothing": {"type": "null"},
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    let flat = flat(&schema).unwrap();
    for fits in [
        json!({"city": "Oslo"}),
        json!({"days": -3, "city": ""}),
        json!({"city": "Oslo", "days": u64::MAX, "factor": 1, "metric": true, "nothing": null}),
        json!({"city": "Oslo", "factor": 0.5}),
    ] {
        assert!(flat.surely_fits(&fits), "{fits}");
    }
    for unsure in [
        json!({}),
        json!({"days": 1}),
        json!({"city": 1}),
        json!({"city": "Oslo", "days": 1.0}),
        json!({"city": "Oslo", "more": 1}),
        json!([]),
        json!(null),
    ] {
        assert!(!flat.surely_fits(&unsure), "{unsure}");
    }
}

/// V1: what checks anything else is left to the validator.
#[test]
fn a_schema_that_says_more_is_not_flat() {
    for schema in [
        json!(true),
        json!({"type": "object"}),
        json!({"properties": {}}),
        json!({"type": ["object", "null"], "properties": {}}),
        json!({"type": "object", "properties": {}, "minProperties": 1}),
        json!({"type": "object", "properties": {}, "required": ["a"]}),
        json!({"type": "object", "properties": {"a": true}}),
        json!({"type": "object", "properties": {"a": {}}}),
        json!({"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}}}),
        json!({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}),
        json!({"type": "object", "properties": {"a": {"type": "array"}}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "enum": ["b"]}}}),
    ] {
        assert!(flat(&schema).is_none(), "{schema}");
    }
    let wide: Map<_, _> = (0..33).map(|n| (n.to_string(), json!({"type": "null"}))).collect();
    assert!(flat(&json!({"type": "object", "properties": wide})).is_none());
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "type"]).prop_map(str::to_owned)
}

/// A schema of an object that may be flat, and often nearly is.
fn schema() -> impl Strategy<Value = Value> {
    let property = prop_oneof![
        8 => prop::sample::select(vec!["null", "boolean", "integer", "number", "string"])
            .prop_map(|scalar| json!({"type": scalar})),
        1 => prop::sample::select(vec![
            json!(true),
            json!(false),
            json!({"type": "integer", "minimum": 1}),
            json!({"type": ["integer", "string"]}),
            json!({"type": "array", "items": {"type": "integer"}}),
        ]),
    ];
    let properties = prop::collection::btree_map(name(), property, 0..4);
    let required = prop::collection::btree_set(name(), 0..3);
    let more = prop::option::of(any::<bool>());
    (properties, required, more).prop_map(|(properties, required, more)| {
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if let Some(more) = more {
            schema["additionalProperties"] = more.into();
        }
        schema
    })
}

fn arguments() -> impl Strategy<Value = Value> {
    let value = prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1.0),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("1"),
        json!([]),
        json!([1]),
        json!({}),
    ]);
    let object = prop::collection::btree_map(name(), value.clone(), 0..4).prop_map(|fields| json!(fields));
    prop_oneof![9 => object, 1 => value]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// V1: the short path and the validator agree on every schema and all arguments.
    #[test]
    fn the_short_path_agrees_with_the_validator(schema in schema(), args in arguments()) {
        let compiled = Schema::compile(&schema).unwrap();
        let Check::Compiled(check) = &compiled.check else { unreachable!("it has properties") };
        let fits = check.validator.is_valid(&args);
        if check.flat.as_ref().is_some_and(|flat| flat.surely_fits(&args)) {
            prop_assert!(fits, "{schema} {args}");
        }
        prop_assert_eq!(compiled.validate(&args).is_ok(), fits);
    }
}
