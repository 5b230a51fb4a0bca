//! TOML values as JSON, for what a configuration may hold of another format.

use super::section::Value;
use serde_json::{Map, Number};
use std::ops::Range;
use toml::de::{DeFloat, DeInteger, DeValue};

/// The JSON of a value, or what has none and where it stands.
pub(super) fn of(value: Value<'_>) -> Result<serde_json::Value, (String, Range<usize>)> {
    let at = value.span();
    Ok(match value.into_inner() {
        DeValue::String(text) => text.into_owned().into(),
        DeValue::Boolean(flag) => flag.into(),
        DeValue::Integer(number) => integer(&number).map(Into::into).ok_or_else(|| too_large(&number, at))?,
        DeValue::Float(number) => float(&number).map(Into::into).ok_or_else(|| no_number(&number, at))?,
        DeValue::Datetime(_) => return Err(("a date has no JSON: write it as a string".to_owned(), at)),
        DeValue::Array(items) => items.into_iter().map(of).collect::<Result<Vec<_>, _>>()?.into(),
        DeValue::Table(table) => {
            let field = |(key, value): (toml::Spanned<std::borrow::Cow<'_, str>>, _)| {
                Ok((key.into_inner().into_owned(), of(value)?))
            };
            table.into_iter().map(field).collect::<Result<Map<_, _>, (String, Range<usize>)>>()?.into()
        }
    })
}

fn integer(number: &DeInteger<'_>) -> Option<Number> {
    i64::from_str_radix(number.as_str(), number.radix()).ok().map(Number::from)
}

fn float(number: &DeFloat<'_>) -> Option<Number> {
    number.as_str().parse().ok().and_then(Number::from_f64)
}

fn too_large(number: &DeInteger<'_>, at: Range<usize>) -> (String, Range<usize>) {
    (format!("{} is too large", number.as_str()), at)
}

fn no_number(number: &DeFloat<'_>, at: Range<usize>) -> (String, Range<usize>) {
    (format!("{} is no number of JSON", number.as_str()), at)
}
