//! What became of a call, as one line of a protocol has it: the answer of a supervisor to its agent, and of a program to
//! its parent (AG-1).

use crate::ResultMeta;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use toolyard_core::{Content, Outcome, ToolOutput, error::Slug};

/// The fields of a `tool_response` from `tool_call_id` on: `ok` with `result`, or with `error` and `message`; a `note`
/// where arguments were changed; `meta` for who wants it.
///
/// # Examples
/// ```
/// use toolyard_core::{Call, Outcome, Routing, ToolOutput};
/// use toolyard_wire::ToolResponse;
/// let call = Call::new("c1", "Echo", "{}");
/// let outcome = Outcome::new(&call, Routing::Read, Ok(ToolOutput::text("hello")));
/// let response = serde_json::to_value(ToolResponse { outcome: &outcome, meta: false }).unwrap();
/// assert_eq!(response["result"]["text"], "hello");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ToolResponse<'a> {
    /// What became of the call.
    pub outcome: &'a Outcome,
    /// Whether all that is known of it is said (SM-11).
    pub meta: bool,
}

impl ToolResponse<'_> {
    /// Writes the fields into an object that has others before them.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let outcome = self.outcome;
        map.serialize_entry("tool_call_id", outcome.call_id.as_str())?;
        map.serialize_entry("ok", &outcome.success())?;
        match &outcome.status {
            Ok(output) => map.serialize_entry("result", &Shown(output))?,
            Err(error) => {
                map.serialize_entry("error", Slug::from(error.kind).as_str())?;
                map.serialize_entry("message", &error.to_text())?;
            }
        }
        if let Some(note) = outcome.note() {
            map.serialize_entry("note", &note)?;
        }
        if self.meta {
            map.serialize_entry("meta", &ResultMeta::of(outcome).to_json())?;
        }
        Ok(())
    }
}

impl Serialize for ToolResponse<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}

/// An output as an object: itself if it is one, else its parts, and its text if it has no other parts.
struct Shown<'a>(&'a ToolOutput);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let structured = self.0.structured();
        if let Some(data) = structured.as_deref().filter(|data| data.is_object()) {
            return data.serialize(to);
        }
        let content: Cow<'_, [Content]> = match structured {
            Some(data) if self.0.content.is_empty() => vec![Content::text(data.to_string())].into(),
            _ => (&self.0.content[..]).into(),
        };
        let is_text = content.iter().all(|part| matches!(part, Content::Text { .. }));
        let mut map: Map<String, Value> = Map::from_iter([("content".to_owned(), json!(content))]);
        if is_text {
            map.insert("text".to_owned(), self.0.to_text().into());
        }
        map.serialize(to)
    }
}
