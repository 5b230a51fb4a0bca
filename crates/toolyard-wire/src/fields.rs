//! Takes the fields of an object one by one, with errors that name them.

use crate::{
    FieldError,
    json::{self, Fields},
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::RangeInclusive;
use toolyard_core::whole_number;

/// The fields of one object that are not taken yet.
pub(crate) struct Reader {
    /// What precedes the names in errors: the objects that this one is in.
    prefix: String,
    fields: Fields,
}

impl Reader {
    pub(crate) fn new(prefix: impl Into<String>, fields: Fields) -> Self {
        Self { prefix: prefix.into(), fields }
    }

    /// The fields of `value`, which is called `name`.
    pub(crate) fn of(name: &str, prefix: impl Into<String>, value: Value) -> Result<Self, FieldError> {
        match value {
            Value::Object(fields) => Ok(Self::new(prefix, fields)),
            other => Err(wrong(name.to_owned(), "an object", &other)),
        }
    }

    /// Takes a field that is an object.
    pub(crate) fn object(&mut self, key: &str) -> Result<Option<Self>, FieldError> {
        let name = self.name(key);
        self.value(key).map(|value| Self::of(&name, format!("{name}."), value)).transpose()
    }

    /// The name of a field as it stands in errors.
    pub(crate) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    pub(crate) fn value(&mut self, key: &str) -> Option<Value> {
        json::take(&mut self.fields, key)
    }

    /// Takes any value.
    pub(crate) fn any(&mut self, key: &str) -> Result<Option<Value>, FieldError> {
        Ok(self.value(key))
    }

    /// Takes a text of so many bytes.
    pub(crate) fn text(
        &mut self,
        key: &str,
        bytes: RangeInclusive<usize>,
    ) -> Result<Option<String>, FieldError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::String(text)) => {
                bound(|| self.name(key), &text, bytes)?;
                Ok(Some(text))
            }
            Some(other) => Err(wrong(self.name(key), "a string", &other)),
        }
    }

    /// Takes a text of any length.
    pub(crate) fn any_text(&mut self, key: &str) -> Result<Option<String>, FieldError> {
        self.text(key, 0..=usize::MAX)
    }

    /// Takes a whole number in these bounds, which `expected` describes.
    pub(crate) fn whole(
        &mut self,
        key: &str,
        bounds: RangeInclusive<u64>,
        expected: &str,
    ) -> Result<Option<u64>, FieldError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = whole_number(&value).filter(|number| bounds.contains(number));
        number.map(Some).ok_or_else(|| wrong(self.name(key), expected, &value))
    }

    /// Takes how often something happened.
    pub(crate) fn count(&mut self, key: &str) -> Result<Option<u32>, FieldError> {
        let count = self.whole(key, 0..=u32::MAX.into(), "a whole number from 0 to 4294967295")?;
        Ok(count.and_then(|count| u32::try_from(count).ok()))
    }

    pub(crate) fn flag(&mut self, key: &str) -> Result<Option<bool>, FieldError> {
        match self.value(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong(self.name(key), "true or false", &other)),
        }
    }

    /// Takes one of these words.
    pub(crate) fn word<T: DeserializeOwned>(
        &mut self,
        key: &str,
        words: &str,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        // A unit variant may also be written as an object with one field, which is not our spelling.
        let word = value.as_str().and_then(|word| serde_json::from_value(word.into()).ok());
        word.map(Some).ok_or_else(|| wrong(self.name(key), &format!("one of {words}"), &value))
    }

    /// Takes a list of at most `max` items, each read by `item`, which is given its name.
    pub(crate) fn list<T>(
        &mut self,
        key: &str,
        max: usize,
        item: impl Fn(String, Value) -> Result<T, FieldError>,
    ) -> Result<Option<Vec<T>>, FieldError> {
        let name = self.name(key);
        match self.value(key) {
            None => Ok(None),
            Some(Value::Array(items)) if items.len() <= max => {
                let read = |(at, value)| item(format!("{name}[{at}]"), value);
                items.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(Some)
            }
            Some(Value::Array(items)) => Err(FieldError::Wrong {
                field: name,
                expected: format!("a list of at most {max}"),
                found: format!("one of {}", items.len()),
            }),
            Some(other) => Err(wrong(name, "an array", &other)),
        }
    }

    /// Takes a field that has to be there.
    pub(crate) fn must<T>(
        &mut self,
        key: &str,
        take: impl FnOnce(&mut Self, &str) -> Result<Option<T>, FieldError>,
    ) -> Result<T, FieldError> {
        take(self, key)?.ok_or_else(|| self.missing(key))
    }

    pub(crate) fn missing(&self, key: &str) -> FieldError {
        FieldError::Missing { field: self.name(key) }
    }

    pub(crate) fn conflict(&self, key: &str, why: &'static str) -> FieldError {
        FieldError::Conflict { field: self.name(key), why }
    }

    /// Fails if a field is left.
    pub(crate) fn end(self, known: &[&str]) -> Result<(), FieldError> {
        match self.fields.keys().next() {
            None => Ok(()),
            Some(key) => {
                let known: Vec<String> = known.iter().map(|key| self.name(key)).collect();
                Err(FieldError::Unknown { field: self.name(&json::clip(key)), known: known.join(", ") })
            }
        }
    }

    /// The fields that are left.
    pub(crate) fn rest(self) -> Fields {
        self.fields
    }
}

/// Refuses a text that has more or fewer bytes than these.
pub(crate) fn bound(
    field: impl FnOnce() -> String,
    text: &str,
    bytes: RangeInclusive<usize>,
) -> Result<(), FieldError> {
    match bytes.contains(&text.len()) {
        true => Ok(()),
        false => Err(FieldError::Wrong {
            field: field(),
            expected: format!("a text of {} to {} bytes", bytes.start(), bytes.end()),
            found: format!("one of {}", text.len()),
        }),
    }
}

/// The error of a field whose value is not what it may be.
pub(crate) fn wrong(field: String, expected: &str, found: &Value) -> FieldError {
    let found = match found {
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("\"{}\"", json::clip(text)),
        other => json::kind(other).to_owned(),
    };
    FieldError::Wrong { field, expected: expected.to_owned(), found }
}
