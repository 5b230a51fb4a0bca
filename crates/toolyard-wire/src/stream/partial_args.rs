//! Assembles arguments from Gemini's `partialArgs`.
//!
//! Each piece has a path (`$.a.b[0]`, a subset of RFC 9535: names and indexes) and one value. A string may come in
//! several pieces: a piece continues the string at its path if the piece before it had the same path and
//! `willContinue`.

use crate::{DecodeError, bounds::PARTIAL_DEPTH_MAX, json};
use serde_json::{Map, Value};

/// The arguments so far.
#[derive(Debug)]
pub(super) struct PartialArgs {
    root: Value,
    /// The path of the string that the next piece continues.
    unfinished: Option<String>,
}

#[derive(Debug, PartialEq)]
enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl PartialArgs {
    pub(super) fn new(root: Value) -> Self {
        Self { root, unfinished: None }
    }

    pub(super) fn into_value(self) -> Value {
        self.root
    }

    /// Adds the pieces of one event. `holes` is how many array items may still be skipped.
    pub(super) fn extend(&mut self, pieces: Vec<Value>, holes: &mut usize) -> Result<(), DecodeError> {
        pieces.into_iter().try_for_each(|piece| self.add(piece, holes))
    }

    fn add(&mut self, piece: Value, holes: &mut usize) -> Result<(), DecodeError> {
        const PLACE: &str = "functionCall.partialArgs";
        let mut piece = json::object(piece, PLACE)?;
        let path = json::take_either(&mut piece, "jsonPath", "json_path").unwrap_or_default();
        let more = json::take_either(&mut piece, "willContinue", "will_continue");
        let steps = path.as_str().and_then(steps);
        let steps = steps
            .ok_or_else(|| json::shape(format_args!("{PLACE}[].jsonPath"), "a path such as $.a[0]", &path))?;
        let Some(slot) = descend(&mut self.root, &steps, holes) else {
            return Err(json::shape(
                format_args!("{PLACE}[].jsonPath"),
                "a path into these arguments",
                &path,
            ));
        };
        let path = path.as_str().map(str::to_owned);
        let continued = self.unfinished.take() == path;
        match (value(piece), slot) {
            (Some(Value::String(tail)), Value::String(text)) if continued => text.push_str(&tail),
            (Some(value), slot) => *slot = value,
            // A piece without a value only says whether its path continues.
            (None, _) => {}
        }
        if more == Some(Value::Bool(true)) {
            self.unfinished = path;
        }
        Ok(())
    }
}

/// The value of a piece.
fn value(mut piece: Map<String, Value>) -> Option<Value> {
    let mut take = |camel, snake| json::take_either(&mut piece, camel, snake);
    if take("nullValue", "null_value").is_some() {
        return Some(Value::Null);
    }
    take("stringValue", "string_value")
        .or_else(|| take("boolValue", "bool_value"))
        .or_else(|| take("numberValue", "number_value").map(whole))
}

/// Makes whole doubles integers: all numbers arrive as doubles, and a schema's integer `3` arrives as `3.0`.
fn whole(number: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(double) if number.is_f64() && double.fract() == 0.0 && double.abs() < EXACT => {
            Value::from(double as i64)
        }
        _ => number,
    }
}

/// The slot at a path, created if it is missing. `None` if a value of another kind is in the way, or if the path
/// would skip more array items than `holes` allows.
fn descend<'a>(root: &'a mut Value, steps: &[Step<'_>], holes: &mut usize) -> Option<&'a mut Value> {
    let mut at = root;
    for step in steps {
        if at.is_null() {
            *at = match step {
                Step::Key(_) => Value::Object(Map::new()),
                Step::Index(_) => Value::Array(Vec::new()),
            };
        }
        at = match (step, at) {
            (Step::Key(key), Value::Object(fields)) => fields.entry(*key).or_insert(Value::Null),
            (Step::Index(index), Value::Array(items)) => {
                *holes = holes.checked_sub(index.saturating_sub(items.len()))?;
                if items.len() <= *index {
                    items.resize(index + 1, Value::Null);
                }
                &mut items[*index]
            }
            _ => return None,
        };
    }
    Some(at)
}

/// The steps of a path: `$`, then `.name`, `['name']` or `[0]`.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, tail) = step(rest)?;
        steps.push(step);
        rest = tail;
        if steps.len() > PARTIAL_DEPTH_MAX {
            return None;
        }
    }
    Some(steps)
}

fn step(rest: &str) -> Option<(Step<'_>, &str)> {
    if let Some(rest) = rest.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (key, rest) = rest.split_at(end);
        return (!key.is_empty()).then_some((Step::Key(key), rest));
    }
    let rest = rest.strip_prefix('[')?;
    for quote in ['\'', '"'] {
        if let Some(rest) = rest.strip_prefix(quote) {
            let (key, rest) = rest.split_once(quote)?;
            return Some((Step::Key(key), rest.strip_prefix(']')?));
        }
    }
    let (index, rest) = rest.split_once(']')?;
    Some((Step::Index(index.parse().ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(pieces: Value, expect: Value) {
        let mut args = PartialArgs::new(json!({}));
        args.extend(pieces.as_array().unwrap().clone(), &mut 10).unwrap();
        assert_eq!(args.into_value(), expect);
    }

    #[test]
    fn a_string_goes_on_where_the_piece_before_said_so() {
        let pieces = json!([
            {"jsonPath": "$.city", "stringValue": "New ", "willContinue": true},
            {"jsonPath": "$.city", "stringValue": "York", "willContinue": true},
            {"jsonPath": "$.city", "stringValue": ""},
            {"jsonPath": "$.unit", "stringValue": "C"},
        ]);
        check(pieces, json!({"city": "New York", "unit": "C"}));
    }

    #[test]
    fn a_string_that_was_over_is_replaced_by_a_new_one() {
        let pieces = json!([
            {"jsonPath": "$.a", "stringValue": "one"},
            {"jsonPath": "$.a", "stringValue": "two", "willContinue": true},
            {"jsonPath": "$.b", "stringValue": "x"},
            {"jsonPath": "$.a", "stringValue": "three"},
        ]);
        check(pieces, json!({"a": "three", "b": "x"}));
    }

    #[test]
    fn paths_make_objects_and_arrays() {
        let pieces = json!([
            {"jsonPath": "$.a.b[1].c", "numberValue": 3.0},
            {"jsonPath": "$['x.y'][0]", "boolValue": true},
            {"jsonPath": "$.n", "nullValue": "NULL_VALUE"},
            {"jsonPath": "$.f", "numberValue": 0.5},
        ]);
        check(pieces, json!({"a": {"b": [null, {"c": 3}]}, "x.y": [true], "n": null, "f": 0.5}));
    }

    #[test]
    fn a_path_that_leads_nowhere_or_too_far_is_an_error() {
        for path in ["", "a", "$.", "$[", "$[x]", "$['a", "$.a[11]", "$.a[99999999999999999999]", "$[0]"] {
            let mut args = PartialArgs::new(json!({}));
            let error = args.extend(vec![json!({"jsonPath": path, "stringValue": "x"})], &mut 10);
            assert!(matches!(error, Err(DecodeError::Shape { .. })), "{path}");
        }
    }

    #[test]
    fn many_far_paths_stay_within_the_depth_bound() {
        let path = format!("${}", "[0]".repeat(PARTIAL_DEPTH_MAX + 1));
        assert_eq!(steps(&path), None);
    }
}
