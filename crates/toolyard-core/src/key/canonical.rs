//! Canonical JSON: one text for equal values (RFC 8785).

use serde_json::{Map, Number, Value};
use std::{fmt::Write as _, slice, vec};

/// The canonical text of a value, as in RFC 8785.
///
/// It has no white space, sorts fields by the UTF-16 code units of their names, and spells each number and string in
/// one way. It departs from the RFC in one point: the RFC knows doubles only and rounds integers beyond 2^53, whereas
/// here every 64-bit integer keeps all its digits. Otherwise arguments that differ in a large id could compare equal.
///
/// Deep values take no more stack than flat ones.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::canonical_json;
/// assert_eq!(canonical_json(&json!({"b": [1.0, 1e2], "a": "x"})), r#"{"a":"x","b":[1,100]}"#);
/// ```
pub fn canonical_json(value: &Value) -> String {
    let mut text = String::new();
    let mut open = Vec::new();
    open.extend(begin(value, &mut text));
    while let Some(inner) = open.last_mut() {
        match inner.next(&mut text) {
            Some(value) => open.extend(begin(value, &mut text)),
            None => drop(open.pop()),
        }
    }
    text
}

/// An array or object that is partly written.
struct Open<'v> {
    rest: Rest<'v>,
    is_first: bool,
}

enum Rest<'v> {
    Items(slice::Iter<'v, Value>),
    Fields(vec::IntoIter<(&'v String, &'v Value)>),
}

impl<'v> Open<'v> {
    /// Writes up to the next inner value and returns it; `None` once the closing bracket is written.
    fn next(&mut self, text: &mut String) -> Option<&'v Value> {
        let next = match &mut self.rest {
            Rest::Items(items) => items.next().map(|item| (None, item)),
            Rest::Fields(fields) => fields.next().map(|(name, field)| (Some(name), field)),
        };
        let Some((name, value)) = next else {
            text.push(if matches!(self.rest, Rest::Items(_)) { ']' } else { '}' });
            return None;
        };
        if !std::mem::take(&mut self.is_first) {
            text.push(',');
        }
        if let Some(name) = name {
            write_string(name, text);
            text.push(':');
        }
        Some(value)
    }
}

/// Writes a scalar, or the opening bracket of an array or object.
fn begin<'v>(value: &'v Value, text: &mut String) -> Option<Open<'v>> {
    let rest = match value {
        Value::Null => return write(text, "null"),
        Value::Bool(true) => return write(text, "true"),
        Value::Bool(false) => return write(text, "false"),
        Value::Number(number) => return write(text, &number_text(number)),
        Value::String(string) => {
            write_string(string, text);
            return None;
        }
        Value::Array(items) => Rest::Items(items.iter()),
        Value::Object(fields) => Rest::Fields(sorted(fields)),
    };
    text.push(if matches!(rest, Rest::Items(_)) { '[' } else { '{' });
    Some(Open { rest, is_first: true })
}

fn write<'v>(text: &mut String, whole: &str) -> Option<Open<'v>> {
    text.push_str(whole);
    None
}

fn sorted(fields: &Map<String, Value>) -> vec::IntoIter<(&String, &Value)> {
    let mut fields: Vec<_> = fields.iter().collect();
    // Outside the basic plane, UTF-16 order differs from UTF-8 order.
    fields.sort_unstable_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    fields.into_iter()
}

/// 2^64 as a double. Whole doubles below it are written as integers.
const INTEGER_END: f64 = 18_446_744_073_709_551_616.0;

fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(double) if number.is_f64() => double_text(double),
        _ => number.to_string(),
    }
}

fn double_text(double: f64) -> String {
    let is_whole = double.fract() == 0.0 && double.abs() < INTEGER_END;
    match is_whole {
        // All digits, as for an integer of that value; the sign of zero is dropped.
        true => (double as i128).to_string(),
        false => ryu_js::Buffer::new().format(double).to_owned(),
    }
}

/// Escapes only what RFC 8785 3.2.2.2 requires.
fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for char in string.chars() {
        match char {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '\0'..='\u{1f}' => {
                let _infallible = write!(text, "\\u{:04x}", u32::from(char));
            }
            _ => text.push(char),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests;
