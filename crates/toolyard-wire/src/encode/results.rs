//! The results of a message's calls, put together one by one while they are written.

use super::{Answer, answers, anthropic, gemini, neutral, openai_chat, openai_responses};
use crate::{Format, Message};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};
use std::fmt;
use toolyard_core::Outcome;

/// The results of a message's calls as [`encode`](crate::encode) writes them, but put together only while they are
/// serialised, one at a time: for results that are too large to be in memory twice.
///
/// # Examples
/// ```
/// use toolyard_core::{Outcome, Routing, ToolOutput};
/// use toolyard_wire::{Format, Results, decode, encode};
/// let message = decode(r#"{"calls":[{"call_id":"c","name":"now","arguments":{}}]}"#, None)?;
/// let outcomes = [Outcome::new(&message.calls()[0], Routing::Read, Ok(ToolOutput::text("noon")))];
/// let mut written = Vec::new();
/// serde_json::to_writer(&mut written, &Results::new(&message, &outcomes, Format::OpenAiChat))?;
/// assert_eq!(written, encode(&message, &outcomes, Format::OpenAiChat).to_string().into_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Results<'a> {
    answers: Vec<Answer<'a>>,
    shape: Shape,
}

/// What the results of a format look like.
struct Shape {
    /// Whether a result is written without a value of its own.
    is_neutral: bool,
    result: fn(&Answer<'_>) -> Value,
    /// The object that they are in, if they are not a list of their own.
    inside: Option<Object>,
}

/// An object with a list of results.
struct Object {
    role: Option<&'static str>,
    results: &'static str,
}

impl Shape {
    fn of(format: Format) -> Self {
        let is_neutral = false;
        let user = |results| Some(Object { role: Some("user"), results });
        match format {
            Format::Neutral => {
                let inside = Some(Object { role: None, results: "results" });
                Self { is_neutral: true, result: neutral::result, inside }
            }
            Format::OpenAiChat => Self { is_neutral, result: openai_chat::message, inside: None },
            Format::OpenAiResponses => Self { is_neutral, result: openai_responses::item, inside: None },
            Format::Anthropic => Self { is_neutral, result: anthropic::tool_result, inside: user("content") },
            Format::Gemini => Self { is_neutral, result: gemini::part, inside: user("parts") },
        }
    }
}

impl<'a> Results<'a> {
    /// The results of these calls in this format. Nothing is written yet.
    pub fn new(message: &'a Message, outcomes: &'a [Outcome], to: Format) -> Self {
        Self { answers: answers(message, outcomes, to), shape: Shape::of(to) }
    }

    /// All of them together.
    pub(super) fn to_value(&self) -> Value {
        let results: Value = self.answers.iter().map(self.shape.result).collect();
        let Some(object) = &self.shape.inside else { return results };
        let role = object.role.map(|role| ("role".to_owned(), role.into()));
        let results = (object.results.to_owned(), results);
        Value::Object(Map::from_iter(role.into_iter().chain([results])))
    }
}

impl Serialize for Results<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let list = List(self);
        let Some(object) = &self.shape.inside else { return list.serialize(to) };
        let mut fields = to.serialize_map(None)?;
        if let Some(role) = object.role {
            fields.serialize_entry("role", role)?;
        }
        fields.serialize_entry(object.results, &list)?;
        fields.end()
    }
}

/// The results alone.
struct List<'a>(&'a Results<'a>);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Results { answers, shape } = self.0;
        match shape.is_neutral {
            true => to.collect_seq(answers.iter().map(neutral::Written)),
            false => to.collect_seq(answers.iter().map(shape.result)),
        }
    }
}

impl fmt::Debug for Results<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Results").field("calls", &self.answers.len()).finish_non_exhaustive()
    }
}
