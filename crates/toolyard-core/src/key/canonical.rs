//! Canonical JSON: one text for equal values (RFC 8785).

use serde_json::{Map, Number, Value, map};
use std::{fmt, mem, slice, vec};

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
    let mut text = String::with_capacity(USUAL_BYTES);
    let _infallible = write_canonical_json(value, &mut text);
    text
}

/// Writes the [canonical text](canonical_json) of a value, in pieces: for what needs no text of its own, such as a hash.
///
/// # Errors
/// Those of the writer.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::write_canonical_json;
/// let mut text = String::from("args: ");
/// write_canonical_json(&json!({"a": 1.0}), &mut text)?;
/// assert_eq!(text, r#"args: {"a":1}"#);
/// # Ok::<(), std::fmt::Error>(())
/// ```
#[inline]
pub fn write_canonical_json(value: &Value, text: &mut impl fmt::Write) -> fmt::Result {
    // The innermost is kept apart: arguments are usually flat, and then nothing is around it.
    let (mut inner, mut around) = (begin(value, text)?, Vec::new());
    while let Some(open) = &mut inner {
        match open.next(text)? {
            Some(value) => {
                if let Some(deeper) = begin(value, text)? {
                    around.push(mem::replace(open, deeper));
                }
            }
            None => inner = around.pop(),
        }
    }
    Ok(())
}

/// As many bytes as the arguments of most calls have.
const USUAL_BYTES: usize = 128;

/// An array or object that is partly written.
struct Open<'v> {
    rest: Rest<'v>,
    is_first: bool,
}

enum Rest<'v> {
    Items(slice::Iter<'v, Value>),
    /// Fields that are in order as they are.
    Fields(map::Iter<'v>),
    Sorted(vec::IntoIter<(&'v String, &'v Value)>),
}

impl<'v> Open<'v> {
    /// Writes up to the next inner value and returns it; `None` once the closing bracket is written.
    fn next(&mut self, text: &mut impl fmt::Write) -> Result<Option<&'v Value>, fmt::Error> {
        let next = match &mut self.rest {
            Rest::Items(items) => items.next().map(|item| (None, item)),
            Rest::Fields(fields) => fields.next().map(|(name, field)| (Some(name), field)),
            Rest::Sorted(fields) => fields.next().map(|(name, field)| (Some(name), field)),
        };
        let Some((name, value)) = next else {
            text.write_str(if matches!(self.rest, Rest::Items(_)) { "]" } else { "}" })?;
            return Ok(None);
        };
        if !mem::take(&mut self.is_first) {
            text.write_str(",")?;
        }
        if let Some(name) = name {
            write_string(name, text)?;
            text.write_str(":")?;
        }
        Ok(Some(value))
    }
}

/// Writes a scalar, or the opening bracket of an array or object.
fn begin<'v>(value: &'v Value, text: &mut impl fmt::Write) -> Result<Option<Open<'v>>, fmt::Error> {
    let rest = match value {
        Value::Null => return text.write_str("null").map(|()| None),
        Value::Bool(true) => return text.write_str("true").map(|()| None),
        Value::Bool(false) => return text.write_str("false").map(|()| None),
        Value::Number(number) => return write_number(number, text).map(|()| None),
        Value::String(string) => return write_string(string, text).map(|()| None),
        Value::Array(items) => Rest::Items(items.iter()),
        Value::Object(fields) => in_order(fields),
    };
    text.write_str(if matches!(rest, Rest::Items(_)) { "[" } else { "{" })?;
    Ok(Some(Open { rest, is_first: true }))
}

fn in_order(fields: &Map<String, Value>) -> Rest<'_> {
    // Outside the basic plane, UTF-16 order differs from UTF-8 order.
    let order = |a: &str, b: &str| a.encode_utf16().cmp(b.encode_utf16());
    if fields.keys().is_sorted_by(|a, b| order(a, b).is_lt()) {
        return Rest::Fields(fields.iter());
    }
    let mut fields: Vec<_> = fields.iter().collect();
    fields.sort_unstable_by(|(a, _), (b, _)| order(a, b));
    Rest::Sorted(fields.into_iter())
}

/// 2^64 as a double. Whole doubles below it are written as integers.
const INTEGER_END: f64 = 18_446_744_073_709_551_616.0;

fn write_number(number: &Number, text: &mut impl fmt::Write) -> fmt::Result {
    match number.as_f64() {
        Some(double) if number.is_f64() => write_double(double, text),
        _ => write!(text, "{number}"),
    }
}

fn write_double(double: f64, text: &mut impl fmt::Write) -> fmt::Result {
    let is_whole = double.fract() == 0.0 && double.abs() < INTEGER_END;
    match is_whole {
        // All digits, as for an integer of that value; the sign of zero is dropped.
        true => write!(text, "{}", double as i128),
        false => text.write_str(ryu_js::Buffer::new().format(double)),
    }
}

/// Escapes only what RFC 8785 3.2.2.2 requires.
fn write_string(string: &str, text: &mut impl fmt::Write) -> fmt::Result {
    text.write_str("\"")?;
    let mut rest = string;
    // What is escaped is ASCII, so it may be cut at.
    while let Some(at) = rest.bytes().position(is_escaped) {
        text.write_str(&rest[..at])?;
        write_escaped(rest.as_bytes()[at], text)?;
        rest = &rest[at + 1..];
    }
    text.write_str(rest)?;
    text.write_str("\"")
}

fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn write_escaped(byte: u8, text: &mut impl fmt::Write) -> fmt::Result {
    match byte {
        b'"' => text.write_str("\\\""),
        b'\\' => text.write_str("\\\\"),
        0x8 => text.write_str("\\b"),
        b'\t' => text.write_str("\\t"),
        b'\n' => text.write_str("\\n"),
        0xc => text.write_str("\\f"),
        b'\r' => text.write_str("\\r"),
        other => write!(text, "\\u{other:04x}"),
    }
}

#[cfg(test)]
mod tests;
