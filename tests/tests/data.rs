//! Real inputs: the official JSON Schema test suite and a JSON parsing suite, run through the engine.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use base64::Engine as _;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use toolyard::{Call, ErrorKind, Schema, SchemaError, ToolSpec};
use toolyard_tests::{data_file, kinds, scripted, yard};

fn lines<T: for<'de> Deserialize<'de>>(file: &str) -> Option<Vec<T>> {
    let text = std::fs::read_to_string(data_file(file)?).unwrap();
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[derive(Deserialize)]
struct SchemaCase {
    id: String,
    tier: String,
    schema: Value,
    data: Value,
    valid: bool,
}

/// Keywords of JSON Schema 2020-12 that tools may not use, according to the design. This list is independent of the
/// engine's, so that the test can compare the two.
const OUTSIDE: &str = "$anchor $defs $dynamicAnchor $dynamicRef $id $ref $vocabulary allOf anyOf const contains \
    contentEncoding contentMediaType contentSchema dependentRequired dependentSchemas else if maxContains minContains \
    multipleOf not oneOf pattern patternProperties prefixItems propertyNames then unevaluatedItems \
    unevaluatedProperties uniqueItems";

/// Whether a schema keeps to the subset, determined by walking it instead of asking the engine.
fn is_inside(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else { return true };
    keywords.iter().all(|(word, value)| match word.as_str() {
        "properties" => value.as_object().is_none_or(|properties| properties.values().all(is_inside)),
        "items" => is_inside(value),
        "additionalProperties" => value.is_boolean(),
        word => !OUTSIDE.split_whitespace().any(|outside| outside == word),
    })
}

/// A schema of the suite that keeps to the subset gives the suite's verdict; any other is refused at registration,
/// with a pointer to the offending keyword.
#[test]
fn the_official_schema_suite_agrees_or_is_refused() {
    let Some(cases) = lines::<SchemaCase>("json-schema/cases.jsonl") else { return };
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for case in cases.iter().filter(|case| case.tier != "format") {
        let verdict = match (Schema::compile(&case.schema), is_inside(&case.schema)) {
            (Ok(schema), true) => {
                assert_eq!(schema.validate(&case.data).is_ok(), case.valid, "{}: {}", case.id, case.schema);
                "according to the suite"
            }
            (Err(SchemaError::Unsupported { pointer }), false) => {
                assert!(case.schema.pointer(&pointer).is_some(), "{}: '{pointer}' is no place", case.id);
                "refused"
            }
            (answer, inside) => panic!("{} (inside: {inside}): {answer:?}", case.id),
        };
        *counts.entry((case.tier.as_str(), verdict)).or_default() += 1;
    }
    println!("json-schema: {counts:?}");
    assert!(counts[&("required", "according to the suite")] > 150);
}

/// The same schema from outside gives the suite's verdict too, whatever its keywords. It is refused only if it refers
/// to another document.
#[test]
fn the_official_schema_suite_agrees_on_foreign_schemas() {
    let Some(cases) = lines::<SchemaCase>("json-schema/cases.jsonl") else { return };
    let (mut agreed, mut refused) = (0, 0);
    for case in cases.iter().filter(|case| case.tier != "format") {
        match Schema::compile_foreign(&case.schema) {
            Ok(schema) => {
                let fits = schema.validate(&case.data);
                assert_eq!(fits.is_ok(), case.valid, "{}: {} {fits:?}", case.id, case.schema);
                agreed += 1;
            }
            Err(SchemaError::Outside { pointer }) => {
                assert!(case.schema.pointer(&pointer).is_some(), "{}: '{pointer}' is no place", case.id);
                refused += 1;
            }
            Err(other) => panic!("{}: {other}: {}", case.id, case.schema),
        }
    }
    println!("json-schema: {agreed} agreed, {refused} refused");
    assert!(agreed > 700 && refused < 40);
}

#[derive(Deserialize)]
struct JsonCase {
    id: String,
    verdict: String,
    bytes_base64: String,
}

/// A text that is not JSON gives its call `invalid_input`; none causes a panic, and sibling calls run.
#[tokio::test(start_paused = true)]
async fn broken_json_fails_only_its_call() {
    let Some(mut cases) = lines::<JsonCase>("json-parsing/cases.jsonl") else { return };
    for (id, text) in [("deep_arrays", "[".repeat(100_000)), ("deep_objects", "[{\"\":".repeat(50_000))] {
        let bytes_base64 = base64::prelude::BASE64_STANDARD.encode(text);
        cases.push(JsonCase { id: id.to_owned(), verdict: "reject".to_owned(), bytes_base64 });
    }
    let any = ToolSpec::read("any").input_schema(Value::Bool(true));
    let yard = yard(|builder, log| builder.tool(scripted(any, log))).await;
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    let mut not_text = 0;
    for case in &cases {
        let bytes = base64::prelude::BASE64_STANDARD.decode(&case.bytes_base64).unwrap();
        // A provider's answer is UTF-8, so other bytes never become the arguments of a call.
        let Ok(text) = String::from_utf8(bytes) else {
            not_text += 1;
            continue;
        };
        batch.push(Call::new(case.id.as_str(), "any", text));
        batch.push(Call::new(format!("sibling of {}", case.id), "read", "{}"));
        expected.push(case.verdict.as_str());
    }
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (pair, verdict) in outcomes.chunks(2).zip(&expected) {
        let kind = kinds(&pair[..1])[0];
        let ok = match *verdict {
            "accept" => kind.is_none(),
            "reject" => kind == Some(ErrorKind::InvalidInput),
            _ => matches!(kind, None | Some(ErrorKind::InvalidInput)),
        };
        assert!(ok, "{} ({verdict}): {kind:?}", pair[0].call_id);
        assert!(pair[1].success(), "{}", pair[1].call_id);
        *counts.entry(verdict).or_default() += 1;
    }
    println!("json-parsing: {counts:?}, and {not_text} that are no UTF-8");
    yard.events.check();
}
