//! A call paired with its outcome, with the accessors that every format's writer needs.

use crate::{Format, Message, message::Origin, wording::NO_RESULT};
use serde_json::{Map, Value};
use std::borrow::Cow;
use toolyard_core::{Call, CallError, Content, Outcome, ToolOutput};

/// One call and its outcome, if it has one.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    pub(crate) call: &'a Call,
    pub(crate) origin: &'a Origin,
    outcome: Option<&'a Outcome>,
    /// Whether the results go back in the format in which the calls came.
    same_format: bool,
}

/// Pairs every call with its outcome, in call order.
pub(crate) fn answers<'a>(message: &'a Message, outcomes: &'a [Outcome], to: Format) -> Vec<Answer<'a>> {
    let pairs = message.calls().iter().zip(message.origins()).enumerate();
    let answer = |(index, (call, origin))| Answer {
        call,
        origin,
        outcome: outcome_of(call, index, outcomes),
        same_format: message.format() == to,
    };
    pairs.map(answer).collect()
}

/// The outcome at the call's position. It is searched by id only if the outcome there belongs to another call, so
/// that calls which share an id each get their own.
fn outcome_of<'a>(call: &Call, index: usize, outcomes: &'a [Outcome]) -> Option<&'a Outcome> {
    let is_its = |outcome: &&Outcome| outcome.call_id == call.id;
    let at_place = outcomes.get(index).filter(is_its);
    at_place.or_else(|| outcomes.iter().find(is_its))
}

impl<'a> Answer<'a> {
    /// The id to answer under: the provider's, or the generated one. Another format cannot match an empty id.
    pub(crate) fn id(&self) -> &'a str {
        let own = self.origin.id.as_deref().filter(|id| self.same_format || !id.is_empty());
        own.unwrap_or(self.call.id.as_str())
    }

    /// The id to answer under in a format whose ids are optional: `None` if the call came without one.
    pub(crate) fn original_id(&self) -> Option<&'a str> {
        if self.same_format { self.origin.id.as_deref() } else { Some(self.id()) }
    }

    /// A field that came with the call and goes back with the result, if both use the same format.
    pub(crate) fn echo(&self, key: &str) -> Option<&'a Value> {
        self.passthrough()?.get(key)
    }

    /// All fields of the call that were not understood, if the result goes back in the same format.
    pub(crate) fn passthrough(&self) -> Option<&'a Map<String, Value>> {
        self.call.passthrough.as_deref().filter(|_| self.same_format)
    }

    /// The provider's own second id, if the result goes back in the same format.
    pub(crate) fn provider_id(&self) -> Option<&'a str> {
        self.call.provider_id.as_deref().filter(|_| self.same_format)
    }

    pub(super) fn output(&self) -> Option<&'a ToolOutput> {
        self.outcome?.status.as_ref().ok()
    }

    pub(super) fn error(&self) -> Option<&'a CallError> {
        self.outcome?.error()
    }

    pub(super) fn is_error(&self) -> bool {
        self.output().is_none()
    }

    /// The arguments that ran, if the person who approved the call changed them.
    pub(super) fn edited(&self) -> Option<&'a Value> {
        self.outcome?.edited()
    }

    /// Whether the result is durable, or need not be (SM-4).
    pub(super) fn is_recorded(&self) -> bool {
        self.outcome.is_none_or(|outcome| outcome.recorded)
    }

    /// What the model has to be told beside the result.
    pub(super) fn note(&self) -> Option<String> {
        self.outcome?.note()
    }

    /// The result as text, after its note.
    pub(super) fn text(&self) -> String {
        self.outcome.map_or_else(|| NO_RESULT.to_owned(), Outcome::to_text)
    }

    /// The parts of an output with at least one image for which `carries` holds, after the result's note; other results
    /// are text alone.
    pub(super) fn parts(&self, carries: impl Fn(&str) -> bool) -> Option<Cow<'a, [Content]>> {
        let is_image =
            |part: &Content| matches!(part, Content::Image { media_type, .. } if carries(media_type));
        self.output()?.content.iter().any(is_image).then(|| self.all_parts()).flatten()
    }

    /// The parts of an output, after the result's note.
    pub(super) fn all_parts(&self) -> Option<Cow<'a, [Content]>> {
        let parts = self.output()?.content.as_slice();
        Some(match self.note() {
            None => Cow::Borrowed(parts),
            Some(note) => std::iter::once(Content::text(note)).chain(parts.iter().cloned()).collect(),
        })
    }
}

/// The text that replaces a part which the format does not carry.
pub(super) fn part_text(part: &Content) -> String {
    ToolOutput::parts(vec![part.clone()]).to_text()
}

/// An image as a data URL.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}
