//! The fields of a line, each as it stands.

use super::ask::Refused;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use toolyard::CallId;
use toolyard_wire::bounds::CALL_ID_BYTES_MAX;

/// Every field that some operation has. Others are ignored: a later version may have more.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Fields<'a> {
    #[serde(borrow, deserialize_with = "present")]
    pub(super) op: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) tool_call_id: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) tool: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) args: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) after: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) meta: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) calls: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) protocol: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) deltas: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) result: Option<&'a RawValue>,
}

/// A field that is there, null included.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

impl<'a> Fields<'a> {
    /// Reads an object.
    pub(super) fn of(text: &'a str) -> Result<Self, Refused> {
        // Not left to serde, for which a list of the fields' values is a struct too.
        if !text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with('{') {
            return Err(Refused::new("a line must be one JSON object"));
        }
        serde_json::from_str(text).map_err(|error| Refused::new(format!("this is no JSON object: {error}")))
    }

    /// The id of the call that it is about, if that can be read.
    pub(super) fn id(&self) -> Option<CallId> {
        let id = text("tool_call_id", self.tool_call_id).ok()?;
        (1..=CALL_ID_BYTES_MAX).contains(&id.len()).then(|| id.into())
    }

    /// The id of the call that it must be about.
    pub(super) fn needed_id(&self) -> Result<CallId, Refused> {
        let id = text("tool_call_id", self.tool_call_id)?;
        if !(1..=CALL_ID_BYTES_MAX).contains(&id.len()) {
            let why = format!("field 'tool_call_id' must have 1 to {CALL_ID_BYTES_MAX} bytes");
            return Err(Refused::new(why));
        }
        Ok(id.into())
    }
}

/// The text of a field that must be there. In most nothing is escaped, and it is not copied.
pub(super) fn text<'a>(name: &str, field: Option<&'a RawValue>) -> Result<Cow<'a, str>, Refused> {
    match field.and_then(|field| plain(field.get())) {
        Some(text) => Ok(Cow::Borrowed(text)),
        None => needed(name, field, "a string").map(Cow::Owned),
    }
}

/// What is between the quotes of a JSON text in which nothing is escaped.
fn plain(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"').filter(|text| !text.contains('\\'))
}

/// The value of a field that must be there.
pub(super) fn needed<'a, T: Deserialize<'a>>(
    name: &str,
    field: Option<&'a RawValue>,
    kind: &str,
) -> Result<T, Refused> {
    match optional(name, field, kind)? {
        Some(value) => Ok(value),
        None => Err(Refused::new(format!("field '{name}' is missing"))),
    }
}

/// The value of a field that may be left out.
pub(super) fn optional<'a, T: Deserialize<'a>>(
    name: &str,
    field: Option<&'a RawValue>,
    kind: &str,
) -> Result<Option<T>, Refused> {
    let read = |field: &'a RawValue| serde_json::from_str(field.get());
    let misfit = |_| Refused::new(format!("field '{name}' must be {kind}"));
    field.map(read).transpose().map_err(misfit)
}
