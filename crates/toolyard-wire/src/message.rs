//! The calls of one model answer, and the facts needed to answer them.

use crate::{
    Format, NameMap,
    draft::Draft,
    found::{Found, Text},
    ids::Ids,
};
use std::sync::Arc;
use toolyard_core::{Batch, Call, CallTimeout};

/// The facts about a call on the wire that the [`Call`] itself does not keep.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Origin {
    /// The id to send back, empty if the model left it empty; `None` if the call came without one.
    pub(crate) id: Option<Arc<str>>,
    /// The name to send back.
    pub(crate) name: Arc<str>,
    /// Whether the call is to a custom tool.
    pub(crate) custom: bool,
}

/// The calls of one model answer in order and the text beside them, with the ids and names that go back to the provider with the results.
///
/// A call that came without an id, or with an empty one, gets one here, unique in the message (`call_1`, …). It is
/// sent back only where the format requires an id: Gemini, the one provider whose ids are optional, gets none. A result
/// that joins the provider's own message has the empty id of its call, because that is the one it is matched with.
///
/// # Examples
/// ```
/// use toolyard_wire::decode;
/// let message = decode(r#"{"parts":[{"functionCall":{"name":"now"}}]}"#, None)?;
/// assert_eq!(message.calls()[0].id.as_str(), "call_1");
/// assert_eq!(message.batch().len(), 1);
/// # Ok::<(), toolyard_wire::DecodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Message {
    format: Format,
    calls: Vec<Call>,
    origins: Vec<Origin>,
    texts: Vec<Text>,
    ids: Ids,
    cut: bool,
}

impl Message {
    /// Creates a message from calls that were made by hand: each has its id, and none is to a custom tool.
    pub fn new(format: Format, calls: Vec<Call>) -> Self {
        let mut message = Self::empty(format);
        for call in calls {
            let origin = Origin { id: Some(call.id.as_str().into()), name: call.name.clone(), custom: false };
            message.ids.reserve(call.id.as_str());
            message.origins.push(origin);
            message.calls.push(call);
        }
        message
    }

    pub(crate) fn empty(format: Format) -> Self {
        Self {
            format,
            calls: Vec::new(),
            origins: Vec::new(),
            texts: Vec::new(),
            ids: Ids::default(),
            cut: false,
        }
    }

    pub(crate) fn of(format: Format, found: Found) -> Self {
        let mut message = Self::empty(format);
        found.texts.into_iter().for_each(|text| message.push_text(text));
        message.calls.reserve_exact(found.drafts.len());
        message.origins.reserve_exact(found.drafts.len());
        if found.drafts.iter().all(|draft| draft.own_id().is_some()) {
            // No id has to be found, so none is remembered.
            for draft in found.drafts {
                let id = draft.own_id().unwrap_or_default().into();
                message.add(draft, id);
            }
            return message;
        }
        for id in found.drafts.iter().filter_map(Draft::own_id) {
            message.ids.reserve(id);
        }
        for draft in found.drafts {
            message.push(draft);
        }
        message
    }

    /// Adds a call and returns it.
    pub(crate) fn push(&mut self, draft: Draft) -> &Call {
        let id = self.ids.internal(draft.own_id());
        self.add(draft, id)
    }

    /// Adds a call under this id.
    fn add(&mut self, draft: Draft, id: Arc<str>) -> &Call {
        let sent = draft.id.map(|sent| if *sent == *id { id.clone() } else { sent.into() });
        let mut call = Call::with_arguments(id, draft.name, draft.arguments);
        call.provider_id = draft.provider_id.map(Into::into);
        call.idempotency_key = draft.idempotency_key.map(Into::into);
        call.timeout = draft.timeout.map(CallTimeout::of_attempt);
        call.passthrough = (!draft.passthrough.is_empty()).then(|| Box::new(draft.passthrough));
        self.origins.push(Origin { id: sent, name: call.name.clone(), custom: draft.custom });
        self.calls.push(call);
        &self.calls[self.calls.len() - 1]
    }

    /// Adds a text. The content of a Chat message has no place among the calls, and stands before them.
    pub(crate) fn push_text(&mut self, text: Text) {
        let calls_before = if self.format == Format::OpenAiChat { 0 } else { text.calls_before };
        self.texts.push(Text { calls_before, ..text });
    }

    /// Adds a piece of streamed text, which may continue the one before it.
    pub(crate) fn push_piece(&mut self, piece: Text) {
        let rest = match self.texts.last_mut() {
            Some(last) if self.format == Format::OpenAiChat || last.calls_before == piece.calls_before => {
                last.join(piece.wire)
            }
            _ => Some(piece.wire),
        };
        if let Some(wire) = rest {
            self.push_text(Text { wire, ..piece });
        }
    }

    pub(crate) fn texts(&self) -> &[Text] {
        &self.texts
    }

    pub(crate) fn set_cut(&mut self) {
        self.cut = true;
    }

    /// The format in which the calls came.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The calls, in the order in which the model wrote them.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The calls as a batch for the engine. Ids, names and arguments are shared, not copied.
    pub fn batch(&self) -> Batch {
        Batch::new(self.calls.clone())
    }

    /// The text that the model wrote beside its calls, empty if it wrote none. What stands between two calls is a
    /// paragraph of its own. The model's reasoning does not count.
    pub fn text(&self) -> String {
        let mut all = String::new();
        let mut calls_before = 0;
        for text in &self.texts {
            if text.calls_before != calls_before && !all.is_empty() {
                all.push_str("\n\n");
            }
            calls_before = text.calls_before;
            all.push_str(&text.plain());
        }
        all
    }

    /// Whether the response has no tool calls: the model is done, or wrote only text.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the stream broke off, inside a call or inside an event after one. A call that was cut off is in the
    /// message with the text received so far, and the engine answers it `invalid_input`.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Restores the tools' own names in the calls, where a [`NameMap`] renamed them for the provider. Results still go
    /// back under the provider's names. A name that the map does not know stays.
    #[must_use]
    pub fn with_original_names(mut self, names: &NameMap) -> Self {
        for call in &mut self.calls {
            if let Some(original) = names.original(&call.name) {
                call.name = original.into();
            }
        }
        self
    }

    /// The same calls, those whose id is empty under the generated one.
    pub(crate) fn without_empty_ids(&self) -> Self {
        let mut message = self.clone();
        for (origin, call) in message.origins.iter_mut().zip(&message.calls) {
            if origin.id.as_deref() == Some("") {
                origin.id = Some(call.id.as_str().into());
            }
        }
        message
    }

    /// The calls alone, without the rest of the message.
    pub fn into_calls(self) -> Vec<Call> {
        self.calls
    }

    pub(crate) fn origins(&self) -> &[Origin] {
        &self.origins
    }
}

impl PartialEq for Message {
    /// Compares what was received; the generator's state for further ids does not count.
    fn eq(&self, other: &Self) -> bool {
        (self.format, self.cut) == (other.format, other.cut)
            && self.calls == other.calls
            && self.origins == other.origins
            && self.texts == other.texts
    }
}
