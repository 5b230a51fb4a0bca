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

    fn visit_f64<E: Error>(self, _: f64) -> Result<Field, E> {
        Ok(Field::Other)
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
}
