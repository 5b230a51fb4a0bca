//! Foreign schemas, which somebody else wrote: all of JSON Schema, but bounded and self-contained.
//!
//! ```text
//!   schema ─► size ─► depth, references, ids ─► the draft's validator, which fetches nothing ─► Validator
//! ```
//!
//! A foreign schema must not make the program use the network or read files, and must not cost more than its size
//! allows. So it is checked before it is compiled. References may only lead to places within the schema.

use super::{DEPTH_MAX, Place, SchemaError};
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The largest size of a foreign schema, as JSON text.
const BYTES_MAX: usize = 256 << 10;

/// How often the matching of a pattern may backtrack; beyond that the text does not match.
const BACKTRACKS_MAX: usize = 100_000;

/// The largest size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Keywords that refer to another schema.
const REFERENCES: &[&str] = &["$ref", "$dynamicRef", "$recursiveRef"];

/// Keywords whose value is data, not a schema.
const DATA: &[&str] = &["enum", "const", "default", "examples", "example"];

/// Keywords whose value is a map of schemas by name.
const BY_NAME: &[&str] =
    &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// Checks and compiles the schema.
pub(super) fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    let bytes = schema.to_string().len();
    if bytes > BYTES_MAX {
        return Err(SchemaError::TooLarge { bytes });
    }
    check(schema, &mut Place::root())?;
    let patterns =
        PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS_MAX).size_limit(PATTERN_BYTES_MAX);
    let options = jsonschema::options().with_draft(draft(schema)).should_validate_formats(false);
    options.offline().with_pattern_options(patterns).build(schema).map_err(|error| SchemaError::Malformed {
        pointer: error.instance_path().to_string(),
        why: super::misfits::message(&error),
    })
}

/// The draft that the schema names; 2020-12 if it names none or an unknown one.
fn draft(schema: &Value) -> Draft {
    let declared = schema.get("$schema").and_then(Value::as_str).unwrap_or_default();
    let drafts = [
        ("draft-04", Draft::Draft4),
        ("draft-06", Draft::Draft6),
        ("draft-07", Draft::Draft7),
        ("2019-09", Draft::Draft201909),
    ];
    let known = drafts.into_iter().find(|(name, _)| declared.contains(name));
    known.map_or(Draft::Draft202012, |(_, draft)| draft)
}

/// Whether every misfit can be reported. If references lead to further references, there can be 2^depth misfits, and
/// finding them takes as long.
pub(super) fn can_report_all(schema: &Value) -> bool {
    fn within(schema: &Value, in_parts: bool) -> bool {
        match schema {
            Value::Object(keywords) => keywords.iter().all(|(keyword, value)| match value {
                Value::String(to) if REFERENCES.contains(&keyword.as_str()) => !in_parts && leads_to_part(to),
                value => within(value, in_parts || matches!(keyword.as_str(), "$defs" | "definitions")),
            }),
            Value::Array(items) => items.iter().all(|item| within(item, in_parts)),
            _ => true,
        }
    }
    within(schema, false)
}

fn leads_to_part(to: &str) -> bool {
    to.starts_with("#/$defs/") || to.starts_with("#/definitions/")
}

/// Checks that a schema is within bounds and self-contained.
fn check(schema: &Value, at: &mut Place) -> Result<(), SchemaError> {
    let Value::Object(keywords) = schema else { return bounded(schema, at) };
    in_bounds(at)?;
    keywords
        .iter()
        .try_for_each(|(keyword, value)| at.within(keyword, |at| check_keyword(keyword, value, at)))
}

fn check_keyword(keyword: &str, value: &Value, at: &mut Place) -> Result<(), SchemaError> {
    match (keyword, value) {
        (keyword, Value::String(to)) if REFERENCES.contains(&keyword) && !to.starts_with('#') => {
            Err(SchemaError::Outside { pointer: at.pointer() })
        }
        // An id in a part of the schema would change what references in it mean.
        ("$id" | "id", Value::String(_)) if at.segments.len() > 1 => {
            Err(SchemaError::Outside { pointer: at.pointer() })
        }
        (keyword, value) if DATA.contains(&keyword) => bounded(value, at),
        (keyword, Value::Object(named)) if BY_NAME.contains(&keyword) => {
            named.iter().try_for_each(|(name, schema)| at.within(name, |at| check(schema, at)))
        }
        (_, Value::Array(items)) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| at.within(&index.to_string(), |at| check(item, at)))
        }
        (_, value) => check(value, at),
    }
}

/// Checks that data is nested no deeper than a schema may be.
fn bounded(data: &Value, at: &mut Place) -> Result<(), SchemaError> {
    in_bounds(at)?;
    match data {
        Value::Array(items) => items.iter().try_for_each(|item| at.within("-", |at| bounded(item, at))),
        Value::Object(fields) => {
            fields.iter().try_for_each(|(name, field)| at.within(name, |at| bounded(field, at)))
        }
        _ => Ok(()),
    }
}

fn in_bounds(at: &Place) -> Result<(), SchemaError> {
    match at.segments.len() > 2 * DEPTH_MAX {
        true => Err(SchemaError::TooDeep { pointer: at.pointer() }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests;
