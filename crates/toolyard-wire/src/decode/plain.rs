//! A batch in the neutral form in which nothing is unusual, read into its calls without a JSON value of the whole text.
//!
//! ```text
//!   {"calls":[{"call_id","name","arguments","idempotency_key"?}…]} ─► drafts
//!   anything else, and whatever is wrong ───────────────────────────► None: read by the neutral form's own reader
//! ```

use crate::{
    draft::{Draft, arguments},
    json::Fields,
};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// The calls of a plain batch. A text that is none is given up at the first thing that shows it.
pub(super) fn calls(text: &str) -> Option<Vec<Draft>> {
    serde_json::from_str::<Batch>(text).ok().map(|batch| batch.0)
}

struct Batch(Vec<Draft>);

struct Plain(Draft);

/// Reads an object. Derived readers would take an array for one too.
struct Object<T>(fn() -> T);

/// What is read field by field.
trait ByField: Sized {
    /// Takes the value of this field, which it has not taken before.
    fn take<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<(), M::Error>;
}

impl<'de, T: ByField> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<T, M::Error> {
        let mut read = (self.0)();
        // A key with an escape in it cannot be borrowed, and is unusual.
        while let Some(key) = map.next_key::<&str>()? {
            read.take(key, &mut map)?;
        }
        Ok(read)
    }
}

/// The calls that have been read, if they have.
#[derive(Default)]
struct OfBatch(Option<Vec<Plain>>);

impl ByField for OfBatch {
    fn take<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<(), M::Error> {
        if key != "calls" || self.0.is_some() {
            return Err(unusual());
        }
        self.0 = Some(map.next_value()?);
        Ok(())
    }
}

/// The fields of a call that have been read.
#[derive(Default)]
struct OfCall {
    id: Option<String>,
    name: Option<String>,
    arguments: Option<serde_json::Value>,
    idempotency_key: Option<String>,
}

impl ByField for OfCall {
    fn take<'de, M: MapAccess<'de>>(&mut self, key: &str, map: &mut M) -> Result<(), M::Error> {
        let text = match key {
            "arguments" if self.arguments.is_none() => {
                self.arguments = Some(map.next_value()?);
                return Ok(());
            }
            "call_id" => &mut self.id,
            "name" => &mut self.name,
            "idempotency_key" => &mut self.idempotency_key,
            _ => return Err(unusual()),
        };
        if text.is_some() {
            return Err(unusual());
        }
        *text = Some(map.next_value()?);
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = from.deserialize_map(Object(OfBatch::default))?;
        let calls = read.0.ok_or_else(unusual)?;
        Ok(Self(calls.into_iter().map(|call| call.0).collect()))
    }
}

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = from.deserialize_map(Object(OfCall::default))?;
        Ok(Self(Draft {
            id: read.id,
            name: read.name.unwrap_or_default(),
            arguments: arguments(read.arguments),
            idempotency_key: read.idempotency_key,
            provider_id: None,
            custom: false,
            timeout: None,
            passthrough: Fields::new(),
        }))
    }
}

/// Nobody sees it.
fn unusual<E: Error>() -> E {
    E::custom("not a plain batch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, Message, decode::whole, json};

    /// A plain batch is read as the neutral form's own reader reads it.
    #[test]
    fn a_plain_batch_is_read_as_any_other() {
        for text in [
            r#"{"calls":[]}"#,
            r#" {"calls" : [{"call_id":"a","name":"x","arguments":{"n":1.50,"deep":[{}]}}]} "#,
            r#"{"calls":[{"name":"x","arguments":"{"},{"call_id":"","name":""},{"call_id":"call_1","name":"y"}]}"#,
            r#"{"calls":[{"arguments":null,"idempotency_key":"","name":"x"},{"arguments":"","call_id":"\u0061"}]}"#,
            r#"{"calls":[{"call_id":"a","name":"x"},{"call_id":"a","name":"y"}]}"#,
        ] {
            let plain = Message::of(Format::Neutral, calls(text).expect(text).into());
            let whole = whole(json::parse(text).unwrap(), Format::Neutral).unwrap();
            assert_eq!(plain, Message::of(Format::Neutral, whole), "{text}");
        }
    }

    /// Whatever else there is, the other reader decides about.
    #[test]
    fn anything_unusual_is_left_to_the_other_reader() {
        for text in [
            "",
            "[]",
            "{}",
            r#"[[{"call_id":"a","name":"x"}]]"#,
            r#"{"calls":null}"#,
            r#"{"calls":[["a","x"]]}"#,
            r#"{"calls":[{"name":1}]}"#,
            r#"{"calls":[{"call_id":null,"name":"x"}]}"#,
            r#"{"calls":[{"name":"x","timeout_ms":1}]}"#,
            r#"{"calls":[{"name":"x","more":1}]}"#,
            r#"{"calls":[{"name":"x","name":"y"}]}"#,
            r#"{"calls":[{"name":"x","arguments":1,"arguments":2}]}"#,
            r#"{"calls":[],"calls":[]}"#,
            r#"{"calls":[],"text":"t"}"#,
            r#"{"c\u0061lls":[]}"#,
            r#"{"calls":[]}x"#,
            r#"{"calls":["#,
        ] {
            assert!(calls(text).is_none(), "{text}");
        }
    }
}
