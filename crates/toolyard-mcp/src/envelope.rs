//! The outer fields of a message, read without parsing what is nested in them, so that no depth is too deep.

use rmcp::model::RequestId;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// The fields that tell the kinds of JSON-RPC messages apart.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Envelope {
    pub(crate) jsonrpc: Field,
    pub(crate) id: Field,
    pub(crate) method: Field,
    result: Field,
    error: Field,
}

/// The value of an envelope field, as far as it matters.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Field {
    #[default]
    Absent,
    Null,
    Text(String),
    Number(i64),
    /// A value that makes no sense in its field.
    Other,
}

impl Envelope {
    /// The envelope of a JSON object; `None` for anything else.
    pub(crate) fn of(text: &str) -> Option<Self> {
        // The derived `Deserialize` also accepts an array of the fields in order.
        text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
    }

    /// The id, if it is a valid one.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        match &self.id {
            Field::Text(text) => Some(RequestId::String(text.as_str().into())),
            Field::Number(number) => Some(RequestId::Number(*number)),
            Field::Absent | Field::Null | Field::Other => None,
        }
    }

    /// Whether the message has a result or an error.
    pub(crate) fn is_answer(&self) -> bool {
        self.result != Field::Absent || self.error != Field::Absent
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(FieldVisitor)
    }
}

/// Below this a float stands for exactly one whole number; rmcp draws the line there too.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

struct FieldVisitor;

impl<'de> Visitor<'de> for FieldVisitor {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<Field, E> {
        Ok(Field::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Field, E> {
        Ok(Field::Text(text.to_owned()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Field, E> {
        Ok(Field::Number(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Field, E> {
        Ok(i64::try_from(number).map_or(Field::Other, Field::Number))
    }

    /// A whole number may be written as `1.0`.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Field, E> {
        let is_whole = number.fract() == 0.0 && number.abs() < EXACT_BELOW;
        Ok(if is_whole { Field::Number(number as i64) } else { Field::Other })
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Field, E> {
        Ok(Field::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Field, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nested values are skipped at any depth, even on the small stack of a test.
    #[test]
    fn no_depth_is_too_deep() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        for place in ["params", "error", "other"] {
            let text = format!(r#"{{"{place}":{deep},"method":"m","id":"a"}}"#);
            let envelope = Envelope::of(&text).unwrap();
            assert_eq!(envelope.request_id(), Some(RequestId::String("a".into())), "{place}");
        }
        let odd = format!(r#"{{"id":{deep},"method":null}}"#);
        let envelope = Envelope::of(&odd).unwrap();
        assert_eq!(
            (&envelope.id, &envelope.method, envelope.request_id()),
            (&Field::Other, &Field::Null, None)
        );
        assert!(Envelope::of(&deep).is_none());
    }

    /// An id is read as rmcp reads it, however it is written.
    #[test]
    fn an_id_is_that_of_rmcp() {
        for id in [
            "1",
            "1.0",
            "1e2",
            "-0.0",
            "-3.0",
            "1.5",
            "9007199254740991.0",
            "9007199254740992.0",
            "1e300",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "\"1\"",
            "\"\"",
            "true",
            "[1]",
        ] {
            let envelope = Envelope::of(&format!(r#"{{"id":{id}}}"#)).unwrap();
            assert_eq!(envelope.request_id(), serde_json::from_str(id).ok(), "{id}");
        }
    }
}
