//! What a message says of itself, whatever else is in it: read without a look inside, so that no depth is too deep.

use rmcp::model::RequestId;
use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use std::fmt;

/// The fields by which JSON-RPC tells its messages apart.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Envelope {
    pub(crate) jsonrpc: Field,
    pub(crate) id: Field,
    pub(crate) method: Field,
    result: Field,
    error: Field,
}

/// What stands in a field, as far as that says something.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum Field {
    #[default]
    Absent,
    Null,
    Text(String),
    Number(i64),
    /// Something that makes no sense there.
    Other,
}

impl Envelope {
    /// That of an object; `None` for what is none.
    pub(crate) fn of(text: &str) -> Option<Self> {
        // What is derived takes a list for the fields in their order.
        text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten()
    }

    /// The id, where there is one that can be.
    pub(crate) fn request_id(&self) -> Option<RequestId> {
        match &self.id {
            Field::Text(text) => Some(RequestId::String(text.as_str().into())),
            Field::Number(number) => Some(RequestId::Number(*number)),
            Field::Absent | Field::Null | Field::Other => None,
        }
    }

    /// Whether it answers something.
    pub(crate) fn is_answer(&self) -> bool {
        self.result != Field::Absent || self.error != Field::Absent
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Look)
    }
}

/// Below that a float stands for one whole number only; rmcp draws the line there too.
const EXACT_BELOW: f64 = 9_007_199_254_740_992.0;

struct Look;

impl<'de> Visitor<'de> for Look {
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

    /// What is far down is passed over, be it as deep as it will, on a stack as small as that of a test.
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

    /// An id is what rmcp takes it for, in whatever way it is written.
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
